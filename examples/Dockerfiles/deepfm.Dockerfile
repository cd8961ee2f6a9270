# docker build -f examples/Dockerfiles/deepfm.Dockerfile -t registry.baidubce.com/paddle-operator/demo-deepfm:v1 src/paddlejob/examples
FROM python:3.11-slim

RUN apt-get update && \
    apt-get install -y --no-install-recommends libgomp1 && \
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir paddlepaddle==2.6.2 protobuf==4.25.8 "numpy<2" setuptools

# Both click models are in this directory; here train.py is DeepFM.
COPY wide_and_deep /deepfm
COPY wide_and_deep/deepfm.py /deepfm/train.py

WORKDIR /deepfm

ENTRYPOINT ["python3", "train.py"]
