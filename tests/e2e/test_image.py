"""Images built without Docker run in real pods."""

import json
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.images.image import Image, archive, layer

pytestmark = pytest.mark.full


def greeting_image(name: str, directory: Path, text: str) -> Image:
    """An image of two layers: busybox, and one file."""
    busybox = directory / "busybox"
    (busybox / "bin").mkdir(parents=True)
    (busybox / "bin/cat").write_bytes(Path("/bin/busybox").read_bytes())
    (busybox / "bin/cat").chmod(0o755)
    files = directory / "files"
    files.mkdir()
    (files / "greeting").write_text(text)
    below = layer(busybox, directory / "below.tar")
    above = layer(files, directory / "above.tar", at="/srv")
    return Image(name, [below, above], entrypoint=["/bin/cat", "/srv/greeting"], user="65532")


def output_of(cluster: Cluster, namespace: str, image: str, policy: str, node: str) -> str:
    container = {"name": "main", "image": image, "imagePullPolicy": policy}
    spec = {"nodeName": node, "restartPolicy": "Never", "containers": [container]}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cat"}, "spec": spec}
    cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(document))
    wait = ["wait", "-n", namespace, "pod/cat", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s"]
    cluster.kubectl(*wait)
    return cluster.kubectl("logs", "cat", "-n", namespace).stdout


def test_a_pushed_image_is_pulled_under_the_name_of_a_public_registry(
    cluster: Cluster, cluster_namespace: str, tmp_path: Path
) -> None:
    name = "registry.baidubce.com/paddlejob-test/greeting:pushed"
    cluster.registry.push(greeting_image(name, tmp_path, "from the registry\n"))
    assert output_of(cluster, cluster_namespace, name, "Always", "node-1") == "from the registry\n"


def test_an_image_that_was_pushed_again_replaces_what_a_node_has_kept(
    cluster: Cluster, cluster_namespace: str, tmp_path: Path
) -> None:
    name = "registry.baidubce.com/paddlejob-test/greeting:changed"
    for text in ("first\n", "second\n"):
        directory = tmp_path / text.strip()
        directory.mkdir()
        cluster.registry.push(greeting_image(name, directory, text))
        cluster.drop_stale_images()
        assert output_of(cluster, cluster_namespace, name, "IfNotPresent", "node-1") == text
        cluster.kubectl("delete", "pod", "cat", "-n", cluster_namespace)


def test_an_archive_is_loaded_on_one_node(cluster: Cluster, cluster_namespace: str, tmp_path: Path) -> None:
    name = "docker.io/paddlejob-test/greeting:loaded"
    image = greeting_image(name, tmp_path, "from a file\n")
    cluster.nodes[1].load(archive(image, tmp_path / "image.tar"))
    assert output_of(cluster, cluster_namespace, name, "Never", "node-2") == "from a file\n"
