# docker build -f examples/Dockerfiles/resnet.Dockerfile -t registry.baidubce.com/paddle-operator/demo-resnet:v1 src/paddlejob/examples
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

# For networks in which the public sources are slow: docs/howto/mainland.md.
ARG PIP_INDEX_URL
ARG DEBIAN_MIRROR=deb.debian.org

RUN sed -i "s#deb.debian.org#$DEBIAN_MIRROR#" /etc/apt/sources.list.d/debian.sources && \
    apt-get update && \
    apt-get install -y --no-install-recommends libgomp1 && \
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir paddlepaddle==2.6.2 protobuf==4.25.8 "numpy<2" setuptools scipy

COPY collective /resnet

WORKDIR /resnet

CMD ["python", "-m", "paddle.distributed.launch", "train_fleet.py"]
