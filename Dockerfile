# The host and its web interface in one image. docs/guides/operate.md shows how to run it.
#   docker build -t greenroom .

FROM docker.io/library/node:22-bookworm-slim AS web
WORKDIR /src/web
COPY web/package.json web/package-lock.json web/.npmrc ./
# Not `npm ci`: parts of the bundler for other systems are not in the lock file.
RUN npm install --no-save --no-audit --no-fund --loglevel=error
COPY web ./
RUN npm run build

FROM docker.io/library/rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
COPY --from=web /src/web/dist web/dist
# Both folders are caches that are not part of the image, so copy the binary out.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin greenroom && cp target/release/greenroom /greenroom

FROM docker.io/library/debian:bookworm-slim
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin greenroom \
    && install -d -o greenroom -g greenroom -m 700 /data /backups && install -d /etc/greenroom
COPY --from=build /greenroom /usr/local/bin/greenroom
USER greenroom
# The host loads `greenroom.toml` from here.
WORKDIR /etc/greenroom
ENV GREENROOM_DATA=/data
VOLUME /data
EXPOSE 8700
# Queries the host and its database.
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s CMD ["greenroom", "runs", "list", "--limit", "1"]
# 127.0.0.1 inside the container is not reachable from outside. The host warns that this address has no TLS: publish
# the port on 127.0.0.1 only, or set `server.tls`.
ENTRYPOINT ["greenroom"]
CMD ["serve", "--listen", "0.0.0.0:8700"]
