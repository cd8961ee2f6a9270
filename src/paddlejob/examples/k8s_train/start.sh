#!/bin/bash
# The documents' Job runs this as /root/start.sh; it turns environment variables into arguments of start_paddle.py,
# which reports all missing variables at once.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
config=trainer_config.py
for found in "${JOB_PATH:-}/${JOB_NAME:-}/${TRAIN_CONFIG_DIR:-}"/trainer_config*.py; do
    if [ -e "$found" ]; then config=$(basename "$found"); break; fi
done

exec python3 "$here/start_paddle.py" \
    --config=./"$config" \
    --trainer_count="${TRAINER_COUNT:-1}" \
    --num_passes="${NUM_PASSES:-10}" \
    --use_gpu="${USE_GPU:-0}" \
    --log_period=50 \
    --dot_period=10 \
    --saving_period=1 \
    --local=0 \
    "$@"
