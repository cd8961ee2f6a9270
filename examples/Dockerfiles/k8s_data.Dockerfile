# docker build -f examples/Dockerfiles/k8s_data.Dockerfile -t paddlepaddle/paddle-tutorial:k8s_data .
FROM python:3.11-slim

COPY . /source

RUN pip install --no-cache-dir /source && rm -rf /source

COPY src/paddlejob/examples/k8s_data /k8s_data

WORKDIR /k8s_data

CMD ["python3", "get_data.py"]
