/**
 * The way from the gateway to an upstream: its headers, proxy, TLS and the time limit of connections.
 *
 * A driver knows nothing of it: it starts its exchanges by the service that `via` returns. An account with a proxy of its own has a
 * driver of its own, so that logins, completions, continued rounds and the deletion of sessions all go the same way.
 */
import * as Redacted from "effect/Redacted"
import type { NamedUpstream } from "../config/GatewayConfig.ts"
import { basicCredentials, parseProxy } from "../config/proxies.ts"
import type { ExchangeRequest, Exchanges, Way } from "./Exchange.ts"
import type { Driver } from "./Upstream.ts"

/** Headers by which servers know an account: where a request has one, the upstream's does not replace it. */
const credentials: ReadonlySet<string> = new Set(["authorization", "x-api-key", "x-goog-api-key"])

/** What an upstream's requests may repeat in their replies. */
const secretsOf = (
  headers: { readonly [name: string]: string },
  proxies: ReadonlyArray<Redacted.Redacted<string> | undefined>
): ReadonlyArray<string> => [
  ...Object.values(headers),
  ...proxies.flatMap((setting) => {
    const proxy = setting === undefined ? undefined : parseProxy(Redacted.value(setting))
    return proxy === undefined || proxy.password === "" ? [] : [proxy.password, basicCredentials(proxy)]
  })
]

/** The exchanges of an upstream, or of one of its accounts with a proxy of its own. */
export const via = (
  exchanges: Exchanges["Service"],
  { headers, proxy, timeouts, tls }: Pick<NamedUpstream, "headers" | "proxy" | "timeouts" | "tls">,
  accountProxy?: Redacted.Redacted<string>
): Exchanges["Service"] => {
  const way: Way = { accountProxy, proxy, tls, connect: timeouts.connect * 1000 }
  const entries = headers.map(({ name, value }) => [name.toLowerCase(), Redacted.value(value)] as const)
  const all: { readonly [name: string]: string } = Object.fromEntries(entries)
  const names = Object.keys(all)
  /** The headers of a request with the upstream's. */
  const whole = (own: ExchangeRequest["headers"]): ExchangeRequest["headers"] => {
    const merged: Record<string, string> = { ...own }
    for (const name of names) {
      if (own[name] === undefined || !credentials.has(name)) merged[name] = all[name]!
    }
    return merged
  }
  return {
    secrets: secretsOf(all, [proxy, accountProxy]),
    start: (request, options) =>
      exchanges.start(
        { ...request, way, headers: names.length === 0 ? request.headers : whole(request.headers) },
        options
      )
  }
}

/** Makes the driver of an upstream over its way. Accounts with a proxy of their own get theirs by `Driver.via`. */
export const driverVia = (
  exchanges: Exchanges["Service"],
  upstream: Parameters<typeof via>[1],
  make: (exchanges: Exchanges["Service"]) => Driver
): Driver => ({
  ...make(via(exchanges, upstream)),
  via: (proxy) => make(via(exchanges, upstream, proxy))
})
