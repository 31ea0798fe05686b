/** The row of the toy contract in the table of names. */
import type { ProtocolFacts } from "../../../src/contracts/names.ts"

export const toyName = "toy"

export const toyProtocol: ProtocolFacts = {
  style: toyName,
  path: () => "/toy/say",
  needsAccounts: false,
  hasNatives: false,
  hasTools: false,
  family: toyName,
  units: ["input", "output"],
  provider: undefined,
  home: undefined,
  endpoint: /(?:\/say)?\/*$/
}
