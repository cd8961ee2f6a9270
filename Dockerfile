# The operator's image. docs/howto/install.md describes how to build and push it.
FROM python:3.11-slim

COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir /src && rm -rf /src

USER 65532
ENTRYPOINT ["pdj"]
