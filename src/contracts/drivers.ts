/**
 * The drivers of upstreams by the table of contracts: what the configuration, the router and the console ask of each.
 */
import type { TokenUnit } from "../domain/units.ts"
import {
  type CloudName,
  clouds,
  type ProtocolFacts,
  protocols,
  type UpstreamProtocol,
  usualUnits,
  type VendorName
} from "./names.ts"

export type { ServerProtocol, UpstreamProtocol } from "./names.ts"

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
export const protocolFamily = (driver: string): VendorName | undefined =>
  factsOf(driver)?.family as VendorName | undefined

/** Whether an upstream with this driver is a server, with keys as accounts and with names of its own for its models. */
export const isServer = (driver: string): boolean => protocolFamily(driver) !== undefined

/** Whether nothing can be asked of an upstream with this driver without an account. */
export const needsAccounts = (driver: string): boolean => factsOf(driver)?.needsAccounts === true

/** Whether an upstream with this driver serves the native models without a list of them. */
export const hasNatives = (driver: string): boolean => factsOf(driver)?.hasNatives === true

/** Whether tools of its requests are always declared in fields of their own. */
export const hasTools = (driver: string): boolean => factsOf(driver)?.hasTools === true

/** Whether its servers have the API of chat completions and that of Responses, of which the configuration may choose one. */
export const hasApis = (driver: string): boolean => {
  const family = protocolFamily(driver)
  return protocolNames.some((other) => other !== driver && family !== undefined && protocolFamily(other) === family)
}

/** The prices of tokens that servers of a driver charge apart. */
export const chargedUnits = (driver: string): ReadonlyArray<TokenUnit> => factsOf(driver)?.units ?? usualUnits

/** Whether an address leads to the vendor's own servers. */
export const isHome = (driver: string, address: string): boolean => factsOf(driver)?.home?.test(address) === true

/** The provider of a server as traces name it: its cloud, else the vendor of its contract, else its driver. */
export const providerOf = (driver: string, cloud: CloudName | undefined): string =>
  cloud === undefined ? factsOf(driver)?.provider ?? driver : clouds[cloud].provider

/** An address without what names an endpoint beyond the base URL. */
export const baseAddress = (driver: string, path: string): string =>
  path.replace(factsOf(driver)?.endpoint ?? /\/+$/, "")
