# An image with the command `prony`: docker build -t prony . && docker run --rm -v "$PWD:/models" prony profile model.onnx
FROM debian:trixie-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make && rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src
RUN make deb BUILD=/tmp/build CMAKE_FLAGS="-DPRONY_PYTHON=OFF"

FROM debian:trixie-slim
COPY --from=build /tmp/build/*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
WORKDIR /models
ENTRYPOINT ["prony"]
