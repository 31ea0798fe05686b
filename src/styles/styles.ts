/**
 * The client API styles: the one list of them, in the order of the documents. The contract, the errors of
 * paths without a route, hints for addresses, saved samples and metrics are made of it; `handlers.ts` has what serves them.
 */
import { chat } from "./chat/style.ts"
import { embeddings } from "./embeddings/style.ts"
import { generate } from "./generate/style.ts"
import { messages } from "./messages/style.ts"
import { models } from "./models/style.ts"
import { responses } from "./responses/style.ts"

export const styles = [chat, responses, embeddings, messages, generate, models] as const

/** The names of their groups. */
export type StyleId = (typeof styles)[number]["group"]["identifier"]
