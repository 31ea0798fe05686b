/**
 * The proxy of a connection: the account's, else the upstream's, else the environment's.
 *
 * `direct` in place of an address uses no proxy. The environment's proxies never carry what goes to loopback addresses, nor what
 * `no_proxy` excepts: `*`, names with their subdomains, `*.name` for the subdomains alone, addresses and CIDR ranges, each but the
 * ranges with or without a port.
 */
import * as Effect from "effect/Effect"
import { isInRange, parseAddress, parseRange } from "../domain/addresses.ts"
import { EnvironmentInvalid, textVariable } from "./Environment.ts"

/** A proxy. Its password is in `password` alone. */
export interface Proxy {
  readonly protocol: "http" | "https" | "socks5"
  readonly hostname: string
  readonly port: number
  readonly username: string
  readonly password: string
  /** The address without credentials, for logs. */
  readonly address: string
}

/** Whose proxy it is. */
export type ProxyOwner = "account" | "upstream" | "environment"

/** The proxy on a way, and whose it is. */
export interface ChosenProxy {
  /** `undefined` for an address that cannot be used: nothing may go past it. */
  readonly proxy: Proxy | undefined
  readonly owner: ProxyOwner
}

/** The variables of the environment that name proxies; unset ones are empty. */
export interface ProxyVariables {
  readonly http: string
  readonly https: string
  readonly all: string
  readonly no: string
}

/** What a way may be chosen from. */
export interface ProxySettings {
  /** As configured: an address or `direct`. */
  readonly account: string | undefined
  readonly upstream: string | undefined
  readonly environment: ProxyVariables
}

/** Uses no proxy. */
const direct = "direct"

const protocols: ReadonlyMap<string, readonly [protocol: Proxy["protocol"], port: number]> = new Map([
  ["http:", ["http", 80]],
  ["https:", ["https", 443]],
  ["socks5:", ["socks5", 1080]],
  ["socks5h:", ["socks5", 1080]]
])

/** The longest user name and password of the SOCKS protocol, in bytes (RFC 1929). */
const longestCredential = 255

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const unbracketed = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1")

/** Reads the address of a proxy; `undefined` for any other text. */
export const parseProxy = (text: string): Proxy | undefined => {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const known = protocols.get(url.protocol)
  if (known === undefined || url.hostname === "" || !/^\/?$/.test(url.pathname) || url.search + url.hash !== "") {
    return undefined
  }
  const [protocol, usual] = known
  const username = decoded(url.username)
  const password = decoded(url.password)
  if (username === undefined || password === undefined) return undefined
  const isTooLong = [username, password].some((part) => Buffer.byteLength(part) > longestCredential)
  if (protocol === "socks5" && isTooLong) return undefined
  return {
    protocol,
    hostname: unbracketed(url.hostname),
    port: url.port === "" ? usual : Number(url.port),
    username,
    password,
    address: `${url.protocol}//${url.host}`
  }
}

/** A user name and password in the form of the `Basic` scheme. */
export const basicCredentials = ({ password, username }: Proxy): string =>
  Buffer.from(`${username}:${password}`).toString("base64")

/** True for a proxy as configured: an address or `direct`. */
export const isProxySetting = (text: string): boolean => text === direct || parseProxy(text) !== undefined

const contains = (network: string, hostname: string): boolean => {
  const [range, address] = [parseRange(network), parseAddress(hostname)]
  return range !== undefined && address !== undefined && isInRange(address, range)
}

const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname.endsWith(".localhost") || contains("127.0.0.0/8", hostname) ||
  contains("::1", hostname)

const withoutLastDot = (name: string): string => name.replace(/(?<=.)\.$/, "")

/** An entry of `no_proxy`, without its port. */
const matches = (entry: string, hostname: string): boolean => {
  if (entry === "*") return true
  const [network = "", ...prefix] = entry.split("/")
  if (parseAddress(unbracketed(network)) !== undefined) {
    return contains([unbracketed(network), ...prefix].join("/"), hostname)
  }
  const name = withoutLastDot(entry.replace(/^\*?\./, ""))
  return name !== "" && ((hostname === name && !entry.startsWith("*")) || hostname.endsWith(`.${name}`))
}

/** Whether `no_proxy` excepts a host, given in lower case and without brackets. */
const isExcepted = (list: string, hostname: string, port: number): boolean =>
  list.toLowerCase().split(/[\s,]+/).some((entry) => {
    const [, host = "", ownPort] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(entry) ?? [undefined, entry, undefined]
    return host !== "" && (ownPort === undefined || Number(ownPort) === port) && matches(host, hostname)
  })

/** Addresses in the environment often lack their scheme. */
const withScheme = (text: string): string => /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`

/** The address of the environment's proxy; `undefined` for none. */
const ofEnvironment = ({ all, http, https, no }: ProxyVariables, address: URL): string | undefined => {
  const isSecure = address.protocol === "https:"
  const text = (isSecure ? https : http) || all
  if (text === "") return undefined
  const hostname = withoutLastDot(unbracketed(address.hostname).toLowerCase())
  const port = address.port === "" ? (isSecure ? 443 : 80) : Number(address.port)
  return isLoopback(hostname) || isExcepted(no, hostname, port) ? undefined : withScheme(text)
}

/** Chooses the proxy of connections to an http or https URL; `undefined` for none. */
export const chooseProxy = (
  { account, environment, upstream }: ProxySettings,
  address: string
): ChosenProxy | undefined => {
  const text = account ?? upstream ?? ofEnvironment(environment, new URL(address))
  if (text === undefined || text === direct) return undefined
  const owner = account !== undefined ? "account" : upstream !== undefined ? "upstream" : "environment"
  return { proxy: parseProxy(text), owner }
}

/** A variable in lower case, else in upper case. */
const either = (name: string): Effect.Effect<string> =>
  Effect.flatMap(textVariable(name), (value) => value === "" ? textVariable(name.toUpperCase()) : Effect.succeed(value))

/** Reads the variables of the environment that name proxies. */
export const proxyVariables: Effect.Effect<ProxyVariables> = Effect.all({
  http: either("http_proxy"),
  https: either("https_proxy"),
  all: either("all_proxy"),
  no: either("no_proxy")
})

/** Ends the start with a line for each variable that names no proxy, without its value. */
export const checkProxyVariables: Effect.Effect<void, EnvironmentInvalid> = Effect.flatMap(proxyVariables, (named) => {
  const wrong = (["http", "https", "all"] as const)
    .filter((name) => named[name] !== "" && parseProxy(withScheme(named[name])) === undefined)
    .map((name) => `${name}_proxy must be an http, https, socks5 or socks5h address`)
  return wrong.length === 0 ? Effect.void : Effect.fail(new EnvironmentInvalid({ message: wrong.join("\n") }))
})
