/** The table of contracts with the toy contract. */
import { contracts as actual } from "../../../../src/contracts/contracts.ts"
import { toy } from "../contract.ts"

export const contracts = { ...actual, [toy.id]: toy }
