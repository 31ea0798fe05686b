/** Upstreams behind proxies and TLS, and the drivers that call them. */
import { Effect, type Redacted } from "effect"
import type { TlsOptions } from "node:tls"
import type { UpstreamConfig } from "../../../src/config/GatewayConfig.ts"
import { makeOpenAiDriver } from "../../../src/upstream/compatible/driver.ts"
import { driverWithConnection } from "../../../src/upstream/connection.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { makeAuthority } from "../../support/certificates.ts"
import { startOpenAiServer } from "../../support/openaiServer.ts"
import { type ProxyOptions, startProxy, startTlsFront } from "../../support/proxyServers.ts"
import { timeLimits } from "../session/support.ts"

export const authority = makeAuthority()
/** For all servers of the tests: upstreams and https proxies. */
export const certificate = authority.sign("DNS:upstream.test", "DNS:proxy.test", "IP:127.0.0.1")

/** The way of an upstream. */
export type WaySettings = Partial<Pick<UpstreamConfig, "headers" | "proxy" | "tls" | "timeouts">>

/** A driver over a way. */
export const driverOf = (baseUrl: string, settings: WaySettings = {}, account?: Redacted.Redacted<string>) =>
  Effect.map(Exchanges, (exchanges) => {
    const upstream = {
      base_url: baseUrl,
      headers: [],
      credential_header: undefined,
      proxy: undefined,
      tls: undefined,
      timeouts: { connect: 5, first_byte: 10, silence: 10 },
      ...settings
    }
    const driver = driverWithConnection(exchanges, upstream, (exchanges) =>
      makeOpenAiDriver(exchanges, {
        baseUrl,
        models: [],
        furtherModels: [],
        tools: "native",
        limits: timeLimits
      }))
    return account === undefined ? driver : driver.capabilities.withProxy!(account)
  })

export const proxyServer = (options: ProxyOptions) =>
  Effect.acquireRelease(
    Effect.promise(() => startProxy({ certificate, ...options })),
    ({ stop }) => Effect.promise(stop)
  )

export const modelServer = Effect.acquireRelease(
  Effect.promise(() => startOpenAiServer()),
  ({ stop }) => Effect.promise(stop)
)

/** A model server behind TLS. */
export const secureServer = (options: TlsOptions = certificate) =>
  Effect.gen(function*() {
    const server = yield* modelServer
    const behind = Number(new URL(server.baseUrl).port)
    const front = yield* Effect.acquireRelease(
      Effect.promise(() => startTlsFront(options, behind)),
      ({ stop }) => Effect.promise(stop)
    )
    return { server, ...front }
  })
