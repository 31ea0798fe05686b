/**
 * The protocols of upstreams: what the configuration, the router and the console know of each. `upstream/protocols.ts` has the code of each.
 */
import type { TokenUnit } from "../domain/units.ts"
import type { VendorName } from "./names.ts"

interface ProtocolFacts {
  /** A server: its accounts are keys, and it has names of its own for its models. */
  readonly isServer: boolean
  /** Nothing can be asked of it without an account. */
  readonly needsAccounts: boolean
  /** It serves the native models without a list of them. */
  readonly hasNatives: boolean
  /** Its requests always declare tools in fields of their own, so that models without them cannot be served. */
  readonly hasTools: boolean
  /** The vendor's protocol that its servers speak, of which chat completions and Responses are one; `undefined` without one. */
  readonly family: VendorName | undefined
  /** Its servers have the API of chat completions and that of Responses, of which the configuration may choose one. */
  readonly hasApis: boolean
  /** The tokens that its servers charge apart. */
  readonly units: ReadonlyArray<TokenUnit>
  /** What the addresses that operators paste end with beyond the base URL. */
  readonly endpoint: RegExp
}

/** Most vendors have one price for all tokens of a prompt. */
const usualUnits: ReadonlyArray<TokenUnit> = ["input", "output"]

/** What is true of the servers of vendors. */
const server = { isServer: true, needsAccounts: false, hasNatives: false } as const

/** Adding a protocol begins here; the compiler then reports the code that it lacks. */
export const protocols = {
  session: {
    isServer: false,
    needsAccounts: true,
    hasNatives: true,
    hasTools: false,
    family: undefined,
    hasApis: false,
    units: usualUnits,
    endpoint: /\/+$/
  },
  openai: {
    ...server,
    hasTools: false,
    family: "openai",
    hasApis: true,
    // Its servers are of many vendors.
    units: usualUnits,
    endpoint: /(?:\/chat\/completions)?\/*$/
  },
  responses: {
    ...server,
    hasTools: false,
    family: "openai",
    hasApis: true,
    units: ["input", "cached_input", "output"],
    endpoint: /(?:\/(?:chat\/completions|responses))?\/*$/
  },
  messages: {
    ...server,
    hasTools: true,
    family: "messages",
    hasApis: false,
    units: ["input", "cached_input", "cache_write", "cache_write_1h", "output"],
    endpoint: /(?:\/v1)?(?:\/messages)?\/*$/
  },
  generate: {
    ...server,
    hasTools: true,
    family: "generate",
    hasApis: false,
    units: ["input", "cached_input", "output"],
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

/** The driver of the answerer in the gateway, which needs no network. */
export const answerer = "embedded"

/** The API of an upstream: a protocol, or without a network by the answerer in the gateway. */
export type DriverName = UpstreamProtocol | typeof answerer

/** The driver of most servers, which examples have. */
export const usualDriver: DriverName = "openai"

/** The names of all drivers. */
export const driverNames: ReadonlyArray<DriverName> = [answerer, ...protocolNames]

const factsOf = (driver: string): ProtocolFacts | undefined =>
  Object.hasOwn(protocols, driver) ? protocols[driver as UpstreamProtocol] : undefined

/** The vendor's protocol that a driver's server speaks, of which chat completions and Responses are one; `undefined` without one. */
export const protocolFamily = (driver: string): VendorName | undefined => factsOf(driver)?.family

/** Whether an upstream with this driver is a server, with keys as accounts and with names of its own for its models. */
export const isServer = (driver: string): boolean => factsOf(driver)?.isServer === true

/** Whether nothing can be asked of an upstream with this driver without an account. */
export const needsAccounts = (driver: string): boolean => factsOf(driver)?.needsAccounts === true

/** Whether an upstream with this driver serves the native models without a list of them. */
export const hasNatives = (driver: string): boolean => factsOf(driver)?.hasNatives === true

/** Whether tools of its requests are always declared in fields of their own. */
export const hasTools = (driver: string): boolean => factsOf(driver)?.hasTools === true

/** Whether its servers have the API of chat completions and that of Responses, of which the configuration may choose one. */
export const hasApis = (driver: string): boolean => factsOf(driver)?.hasApis === true

/** The prices of tokens that servers of a driver charge apart. */
export const chargedUnits = (driver: string): ReadonlyArray<TokenUnit> => factsOf(driver)?.units ?? usualUnits

/** An address without what names an endpoint beyond the base URL. */
export const baseAddress = (driver: string, path: string): string =>
  path.replace(factsOf(driver)?.endpoint ?? /\/+$/, "")
