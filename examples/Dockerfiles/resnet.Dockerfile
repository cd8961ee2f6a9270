# docker build -f examples/Dockerfiles/resnet.Dockerfile -t registry.baidubce.com/paddle-operator/demo-resnet:v1 src/paddlejob/examples
FROM python:3.11-slim

RUN apt-get update && \
    apt-get install -y --no-install-recommends libgomp1 && \
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir paddlepaddle==2.6.2 protobuf==4.25.8 "numpy<2" setuptools scipy

COPY collective /resnet

WORKDIR /resnet

CMD ["python", "-m", "paddle.distributed.launch", "train_fleet.py"]
