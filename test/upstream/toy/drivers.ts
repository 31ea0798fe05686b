/** What is known of the protocols, with the small one. */
import { protocols as real } from "../../../src/contracts/drivers.ts"

export * from "../../../src/contracts/drivers.ts"

export const protocols = {
  ...real,
  toy: { ...real.openai, family: undefined, hasApis: false, endpoint: /\/+$/ }
}
export const protocolNames = Object.keys(protocols)
export const driverNames = ["embedded", ...protocolNames]
