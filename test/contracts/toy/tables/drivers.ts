/** The table of drivers with that of the toy contract. */
import { makers as actual } from "../../../../src/upstream/protocols.ts"
import { makeToyDriver } from "../driver.ts"
import { toyName } from "../names.ts"

export const makers = { ...actual, [toyName]: makeToyDriver }
