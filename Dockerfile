# The operator's image. docs/howto/install.md describes how to build and push it.
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

# For networks in which the public sources are slow: docs/howto/mainland.md.
ARG PIP_INDEX_URL

COPY pyproject.toml README.md LICENSE /src/
COPY src /src/src
RUN pip install --no-cache-dir /src && rm -rf /src

USER 65532
ENTRYPOINT ["pdj"]
