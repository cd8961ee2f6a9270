# docker build -f examples/Dockerfiles/wide_and_deep.Dockerfile -t registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1 src/paddlejob/examples
FROM python:3.11-slim

RUN apt-get update && \
    apt-get install -y --no-install-recommends libgomp1 && \
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir paddlepaddle==2.6.2 protobuf==4.25.8 "numpy<2" setuptools

COPY wide_and_deep /wide_and_deep

WORKDIR /wide_and_deep

ENTRYPOINT ["python3", "train.py"]
