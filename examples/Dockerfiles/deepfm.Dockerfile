# docker build -f examples/Dockerfiles/deepfm.Dockerfile -t paddlejob/deepfm:v1 src/paddlejob/examples
FROM python:3.11-slim

RUN apt-get update && \
    apt-get install -y --no-install-recommends libgomp1 && \
    rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir paddlepaddle==2.6.2 protobuf==4.25.8 "numpy<2" setuptools

# Both click models are in this directory.
COPY wide_and_deep /wide_and_deep

WORKDIR /wide_and_deep

ENTRYPOINT ["python3", "deepfm.py"]
