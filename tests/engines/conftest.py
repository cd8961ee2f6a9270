from testbed.fixtures import *  # noqa: F403
from tests.support.operator_fixtures import *  # noqa: F403
