# docker build -f examples/Dockerfiles/k8s_data.Dockerfile -t paddlepaddle/paddle-tutorial:k8s_data .
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

# For networks in which the public sources are slow: docs/howto/mainland.md.
ARG PIP_INDEX_URL

COPY pyproject.toml requirements.lock README.md LICENSE /source/
COPY src /source/src

# The s3 extra is for s3:// in DATA_URL. Without the lock file, pip takes minutes to resolve versions.
RUN pip install --no-cache-dir -c /source/requirements.lock "/source[s3]" && rm -rf /source

COPY src/paddlejob/examples/k8s_data /k8s_data

WORKDIR /k8s_data

CMD ["python3", "get_data.py"]
