# docker build -t paddlejob/operator:0.1.0 .
FROM python:3.11-slim

COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir /src && rm -rf /src

USER 65532
ENTRYPOINT ["pdj"]
