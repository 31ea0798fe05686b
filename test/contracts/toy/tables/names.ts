/** The table of names with the toy contract. */
import * as actual from "../../../../src/contracts/names.ts"
import { toyName, toyProtocol } from "../names.ts"

export * from "../../../../src/contracts/names.ts"

export const protocols = { ...actual.protocols, [toyName]: toyProtocol }
