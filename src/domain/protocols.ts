/**
 * The protocols of upstreams: what the configuration and the console know of each. `upstream/protocols.ts` has the code of each.
 */

interface ProtocolFacts {
  /** A server: its accounts are keys, and it has names of its own for its models. */
  readonly isServer: boolean
  /** Its requests always declare tools in fields of their own, so that models without them cannot be served. */
  readonly hasTools: boolean
  /** The vendor's protocol that its servers speak, of which chat completions and Responses are one; `undefined` without one. */
  readonly family: "openai" | "messages" | "generate" | undefined
  /** Its servers have the API of chat completions and that of Responses, of which the configuration may choose one. */
  readonly hasApis: boolean
  /** What the addresses that operators paste end with beyond the base URL. */
  readonly endpoint: RegExp
}

/** Adding a protocol begins here; the compiler then reports the code that it lacks. */
export const protocols = {
  session: { isServer: false, hasTools: false, family: undefined, hasApis: false, endpoint: /\/+$/ },
  openai: {
    isServer: true,
    hasTools: false,
    family: "openai",
    hasApis: true,
    endpoint: /(?:\/chat\/completions)?\/*$/
  },
  responses: {
    isServer: true,
    hasTools: false,
    family: "openai",
    hasApis: true,
    endpoint: /(?:\/(?:chat\/completions|responses))?\/*$/
  },
  messages: {
    isServer: true,
    hasTools: true,
    family: "messages",
    hasApis: false,
    endpoint: /(?:\/v1)?(?:\/messages)?\/*$/
  },
  generate: {
    isServer: true,
    hasTools: true,
    family: "generate",
    hasApis: false,
    endpoint: /(?:\/models(?:\/[^/]*:\w+)?)?\/*$/
  }
} as const satisfies { readonly [name: string]: ProtocolFacts }

/** The protocol of an upstream's replies, as captures and records name it. */
export type UpstreamProtocol = keyof typeof protocols

/** The protocols of servers. */
export type ServerProtocol = {
  readonly [Name in UpstreamProtocol]: (typeof protocols)[Name]["isServer"] extends true ? Name : never
}[UpstreamProtocol]

/** The protocols in the order of lists. */
export const protocolNames = Object.keys(protocols) as ReadonlyArray<UpstreamProtocol>

/** The API of an upstream: a protocol, or without a network by the answerer in the gateway. */
export type DriverName = UpstreamProtocol | "embedded"

/** The names of all drivers. */
export const driverNames: ReadonlyArray<DriverName> = ["embedded", ...protocolNames]

const factsOf = (driver: string): ProtocolFacts | undefined =>
  Object.hasOwn(protocols, driver) ? protocols[driver as UpstreamProtocol] : undefined

/** The vendor's protocol that a driver's server speaks, of which chat completions and Responses are one; `undefined` without one. */
export const protocolFamily = (driver: string): ProtocolFacts["family"] => factsOf(driver)?.family

/** Whether an upstream with this driver is a server, with keys as accounts and with names of its own for its models. */
export const isServer = (driver: string): boolean => factsOf(driver)?.isServer === true

/** Whether tools of its requests are always declared in fields of their own. */
export const hasTools = (driver: string): boolean => factsOf(driver)?.hasTools === true

/** Whether its servers have the API of chat completions and that of Responses, of which the configuration may choose one. */
export const hasApis = (driver: string): boolean => factsOf(driver)?.hasApis === true

/** An address without what names an endpoint beyond the base URL. */
export const baseAddress = (driver: string, path: string): string =>
  path.replace(factsOf(driver)?.endpoint ?? /\/+$/, "")
