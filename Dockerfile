# cyclescope as a container that needs no privileges: docker build -t cyclescope . && docker run --rm cyclescope doctor
FROM rust:1-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo install --locked --path crates/cli --root /cyclescope && /cyclescope/bin/cyclescope manual /cyclescope/share

FROM debian:bookworm-slim
# For --c, --assembler and `marker --around`.
RUN apt-get update && apt-get install --yes --no-install-recommends binutils gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY --from=build /cyclescope /usr/local
# A user that owns nothing. Results go to /results, which any user of the host can be given with --user.
RUN mkdir --mode 1777 /results
USER 65534:65534
WORKDIR /results
ENV HOME=/tmp
ENTRYPOINT ["cyclescope"]
CMD ["doctor"]
