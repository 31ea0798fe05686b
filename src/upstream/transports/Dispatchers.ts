/**
 * undici's dispatchers by the way to the server. Those with the same proxy, TLS and time limit share an agent, which keeps the
 * connections of each origin apart and closes idle ones.
 *
 * There are at most 256 agents: the least recently used one is closed for a new one, and so are those that were not used for a
 * minute. A closed agent ends its running requests first.
 */
import { Agent, type Dispatcher } from "@effect/platform-node/Undici"
import * as Redacted from "effect/Redacted"
import { isIP } from "node:net"
import type { Deadlines } from "../../config/clock/Deadlines.ts"
import { chooseProxy, type ChosenProxy, type ProxyVariables } from "../../config/proxies.ts"
import type { UpstreamTls } from "../../config/tls.ts"
import type { ConnectionSettings } from "../ExchangeRequest.ts"
import { connectWithin, proxyAuthorization } from "./connect.ts"

/** Bytes of the head of a response. */
const longestHead = 64 * 1024

const mostAgents = 256

/** Milliseconds after which an unused agent is closed. */
const longestIdle = 60_000

/** How requests to a server go. */
export interface ResolvedRoute {
  readonly origin: string
  readonly chosen: ChosenProxy | undefined
  /** What a proxy adds that takes the requests themselves, because their server has no TLS. */
  readonly forward:
    | { readonly origin: string; readonly servername?: string; readonly headers: { readonly [name: string]: string } }
    | undefined
  readonly tls: UpstreamTls | undefined
  /** Milliseconds. */
  readonly connect: number
  /** Equal for routes that share connections. */
  readonly key: string
}

const secretOf = (secret: Redacted.Redacted<string> | undefined): string | undefined =>
  secret === undefined ? undefined : Redacted.value(secret)

const resolveRoute = (connection: ConnectionSettings, environment: ProxyVariables, origin: string): ResolvedRoute => {
  const account = secretOf(connection.accountProxy)
  const chosen = chooseProxy({ account, upstream: secretOf(connection.proxy), environment }, origin)
  const proxy = chosen?.proxy
  const isForwarded = proxy !== undefined && proxy.protocol !== "socks5" && origin.startsWith("http:")
  const { connect, tls } = connection
  return {
    origin,
    chosen,
    // Without a name of its own, TLS with the proxy would ask for the server's.
    forward: isForwarded
      ? {
        origin: proxy.address,
        headers: proxyAuthorization(proxy),
        ...(isIP(proxy.hostname) === 0 ? { servername: proxy.hostname } : {})
      }
      : undefined,
    tls,
    connect,
    key: JSON.stringify([connect, tls?.id, isForwarded, proxy])
  }
}

/** The agents of one transport, and the routes of its connections. */
export class Dispatchers {
  readonly #deadlines: Deadlines["Service"]
  readonly #environment: ProxyVariables
  readonly #agents = new Map<string, { readonly agent: Agent; usedAt: number }>()
  /** Agents that end their running requests. */
  readonly #closing = new Set<Agent>()
  readonly #routes = new WeakMap<ConnectionSettings, ResolvedRoute>()

  constructor(deadlines: Deadlines["Service"], environment: ProxyVariables) {
    this.#deadlines = deadlines
    this.#environment = environment
  }

  /** The number of agents, without those that end. */
  get size(): number {
    return this.#agents.size
  }

  /** How requests of a connection go to a server. A connection usually has one server. */
  routeOf(connection: ConnectionSettings, origin: string): ResolvedRoute {
    const known = this.#routes.get(connection)
    if (known?.origin === origin) return known
    const route = resolveRoute(connection, this.#environment, origin)
    this.#routes.set(connection, route)
    return route
  }

  /** Sends a request. Throws where undici does, for a malformed request. */
  dispatch(
    route: ResolvedRoute,
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler
  ): boolean {
    const agent = this.#agentOf(route)
    const { forward, origin } = route
    if (forward === undefined) return agent.dispatch({ ...options, origin }, handler)
    const { headers, ...target } = forward
    const host = { host: new URL(origin).host }
    const forwarded = {
      ...options,
      ...target,
      path: origin + options.path,
      headers: { ...host, ...options.headers, ...headers }
    }
    return agent.dispatch(forwarded, handler)
  }

  /** Ends all requests. */
  async destroy(): Promise<void> {
    const agents = [...[...this.#agents.values()].map(({ agent }) => agent), ...this.#closing]
    this.#agents.clear()
    await Promise.all(agents.map((agent) => agent.destroy()))
  }

  #agentOf({ chosen, connect, forward, key, tls }: ResolvedRoute): Agent {
    const usedAt = this.#deadlines.now()
    const known = this.#agents.get(key)
    if (known !== undefined) {
      // The map has the least recently used agent first.
      this.#agents.delete(key)
      this.#agents.set(key, known)
      known.usedAt = usedAt
      return known.agent
    }
    for (const [key, { agent, usedAt: last }] of this.#agents) {
      if (this.#agents.size < mostAgents && usedAt - last < longestIdle) break
      this.#agents.delete(key)
      this.#close(agent)
    }
    const opening = { proxy: chosen?.proxy, isForwarded: forward !== undefined, tls, limit: connect }
    const agent = new Agent({ connect: connectWithin(this.#deadlines, opening), maxHeaderSize: longestHead })
    this.#agents.set(key, { agent, usedAt })
    return agent
  }

  #close(agent: Agent): void {
    this.#closing.add(agent)
    const closed = () => this.#closing.delete(agent)
    agent.close().then(closed, closed)
  }
}
