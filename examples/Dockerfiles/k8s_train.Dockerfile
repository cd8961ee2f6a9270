# docker build -f examples/Dockerfiles/k8s_train.Dockerfile -t paddlepaddle/paddle-tutorial:k8s_train src/paddlejob/examples
FROM python:3.11-slim

RUN apt-get update && \
    apt-get install -y --no-install-recommends bash libgomp1 && \
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir paddlepaddle==2.6.2 protobuf==4.25.8 "numpy<2" setuptools

COPY k8s_train/start.sh k8s_train/start_paddle.py /root/

# The documents' command is the relative path `bin/bash`.
WORKDIR /

CMD ["/bin/bash", "-c", "/root/start.sh"]
