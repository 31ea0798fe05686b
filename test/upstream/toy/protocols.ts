/** The drivers, with the small one. */
import { makers as real } from "../../../src/upstream/protocols.ts"
import { makeToyDriver } from "./driver.ts"

export const makers = { ...real, toy: makeToyDriver }
