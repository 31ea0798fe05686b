/**
 * The code of the contracts by their names: one row each. `names.ts` has what is known of each without it.
 */
import { chat } from "./chat/contract.ts"
import type { Contract } from "./Contract.ts"
import { generate } from "./generate/contract.ts"
import { messages } from "./messages/contract.ts"
import type { FamilyName } from "./names.ts"
import { responses } from "./responses/contract.ts"

/** The contracts of vendors by their names. */
export const contracts: Readonly<Record<FamilyName, Contract>> = { openai: chat, responses, messages, generate }
