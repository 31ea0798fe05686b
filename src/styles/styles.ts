/**
 * The client API styles, in the order of the API documents. The contract, the errors of paths without a route, hints for
 * wrong addresses and metrics are made from this list; `handlers.ts` lists their handlers.
 */
import { ChatGroup } from "./chat/Api.ts"
import { EmbeddingsGroup } from "./embeddings/Api.ts"
import { GenerateGroup } from "./generate/Api.ts"
import { MessagesGroup } from "./messages/Api.ts"
import { ModelsGroup } from "./models/Api.ts"
import { RelayedGroup } from "./relayed/Api.ts"
import { ResponsesGroup } from "./responses/Api.ts"
import type { Styles } from "./Style.ts"
import { UsageGroup } from "./usage/Api.ts"

const chat = { group: ChatGroup, basePaths: ["/v1"], operation: "chat" } as const

const responses = { group: ResponsesGroup, basePaths: ["/v1"], operation: "chat" } as const

const embeddings = { group: EmbeddingsGroup, basePaths: ["/v1"], operation: "embeddings" } as const

const relayed = { group: RelayedGroup, basePaths: ["/v1"], operation: "carried" } as const

const messages = { group: MessagesGroup, basePaths: ["/v1"], operation: "chat" } as const

const generate = { group: GenerateGroup, basePaths: ["/v1beta"], operation: "generate_content" } as const

const models = { group: ModelsGroup, basePaths: ["/v1"], operation: "chat" } as const

const usage = { group: UsageGroup, basePaths: ["/v1"], operation: "chat" } as const

export const styles = [
  chat,
  responses,
  embeddings,
  relayed,
  messages,
  generate,
  models,
  usage
] as const satisfies Styles

/** The names of the styles' groups. */
export type StyleId = (typeof styles)[number]["group"]["identifier"]
