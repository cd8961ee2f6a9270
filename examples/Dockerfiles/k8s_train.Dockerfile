# docker build -f examples/Dockerfiles/k8s_train.Dockerfile -t paddlepaddle/paddle-tutorial:k8s_train src/paddlejob/examples
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

# For networks in which the public sources are slow: docs/howto/mainland.md.
ARG PIP_INDEX_URL
ARG DEBIAN_MIRROR=deb.debian.org

RUN sed -i "s#deb.debian.org#$DEBIAN_MIRROR#" /etc/apt/sources.list.d/debian.sources && \
    apt-get update && \
    apt-get install -y --no-install-recommends bash libgomp1 && \
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir paddlepaddle==2.6.2 protobuf==4.25.8 "numpy<2" setuptools

COPY k8s_train/start.sh k8s_train/start_paddle.py /root/

# The documents' command is the relative path `bin/bash`.
WORKDIR /

CMD ["/bin/bash", "-c", "/root/start.sh"]
