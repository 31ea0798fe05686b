/**
 * The connection from the gateway to an upstream: its headers, proxy, TLS and the time limit of connections.
 *
 * A driver knows nothing of it: it starts its exchanges by the service that `withConnection` returns. An account with a proxy of its own has a
 * driver of its own, so that logins, completions, continued rounds and the deletion of sessions all go the same way.
 */
import * as Redacted from "effect/Redacted"
import type { UpstreamConfig } from "../config/GatewayConfig.ts"
import { basicCredentials, parseProxy } from "../config/proxies.ts"
import type { Exchanges } from "./Exchange.ts"
import type { ConnectionSettings, ExchangeRequest } from "./ExchangeRequest.ts"
import type { Driver } from "./Upstream.ts"

/** Headers by which servers know an account: where a request has one, the upstream's does not replace it. */
const credentials: ReadonlySet<string> = new Set(["authorization", "x-api-key", "x-goog-api-key"])

/** The password of a proxy, as it is written and as it is sent. */
export const secretsOfProxy = (
  setting: Redacted.Redacted<string> | undefined
): ReadonlyArray<Redacted.Redacted<string>> => {
  const proxy = setting === undefined ? undefined : parseProxy(Redacted.value(setting))
  if (proxy === undefined || proxy.password === "") return []
  return [proxy.password, encodeURIComponent(proxy.password), basicCredentials(proxy)].map((text) =>
    Redacted.make(text)
  )
}

/** The values of an address's query, as they are written and as they are read. The version of an API is no secret. */
export const secretsIn = (address: string): ReadonlyArray<Redacted.Redacted<string>> => {
  if (!address.includes("?")) return []
  return new URL(address).search.slice(1).split("&").flatMap((part) => {
    const [name = "", value = ""] = [...new URLSearchParams(part)][0] ?? []
    if (/version$/i.test(name)) return []
    return [value, part.slice(part.indexOf("=") + 1)].filter((text) => text !== "").map((text) => Redacted.make(text))
  })
}

/** The exchanges of an upstream, or of one of its accounts with a proxy of its own. */
export const withConnection = (
  exchanges: Exchanges["Service"],
  { base_url, credential_header, headers, proxy, timeouts, tls }: Pick<
    UpstreamConfig,
    "base_url" | "credential_header" | "headers" | "proxy" | "timeouts" | "tls"
  >,
  accountProxy?: Redacted.Redacted<string>
): Exchanges["Service"] => {
  const connection: ConnectionSettings = { accountProxy, proxy, tls, connect: timeouts.connect * 1000 }
  const entries = headers.map(({ name, value }) => [name.toLowerCase(), Redacted.value(value)] as const)
  const all: { readonly [name: string]: string } = Object.fromEntries(entries)
  const names = Object.keys(all)
  /** The headers of a request with the upstream's. */
  const whole = (own: ExchangeRequest["headers"]): ExchangeRequest["headers"] => {
    const merged: Record<string, string> = { ...own }
    for (const name of names) {
      if (own[name] === undefined || (name !== credential_header && !credentials.has(name))) merged[name] = all[name]!
    }
    return merged
  }
  return {
    secrets: [
      ...headers.map(({ value }) => value),
      ...secretsIn(base_url),
      ...secretsOfProxy(proxy),
      ...secretsOfProxy(accountProxy)
    ],
    start: (request, options) =>
      exchanges.start(
        { ...request, connection, headers: names.length === 0 ? request.headers : whole(request.headers) },
        options
      )
  }
}

/** The driver of an upstream over the proxy of one of its accounts, if that has one of its own. */
export const driverThrough = (driver: Driver, proxy: Redacted.Redacted<string> | undefined): Driver =>
  proxy === undefined ? driver : driver.capabilities.withProxy?.(proxy) ?? driver

/** Makes the driver of an upstream over its connection. Accounts with a proxy of their own get theirs by its capability `withProxy`. */
export const driverWithConnection = (
  exchanges: Exchanges["Service"],
  upstream: Parameters<typeof withConnection>[1],
  make: (exchanges: Exchanges["Service"]) => Driver
): Driver => {
  const over = (proxy?: Redacted.Redacted<string>): Driver => make(withConnection(exchanges, upstream, proxy))
  const driver = over()
  return { ...driver, capabilities: { ...driver.capabilities, withProxy: over } }
}
