/**
 * Strict schemas of replies: which requests have one, which targets bind it, and how it is asked for.
 *
 * A schema is bound where every reply fits it. A target of which nothing is known gets it as it is, and nothing is said of it.
 */
import * as Effect from "effect/Effect"
import { contractOfStyle } from "../contracts/contractOf.ts"
import { contracts } from "../contracts/contracts.ts"
import { commonWords } from "../contracts/names.ts"
import { isStrictSchema } from "../contracts/shared/schemas.ts"
import { catalogueOf } from "../domain/catalogue.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { SourcedFacts } from "../domain/modelFacts.ts"
import { type Target, targetName } from "../domain/routes.ts"
import { type FamilyName, isWholeFor } from "../domain/VendorFields.ts"
import { acceptedConversation, callersReply } from "../upstream/server/acceptedConversation.ts"
import type { Driver } from "../upstream/Upstream.ts"
import type { ServedInput } from "./CompletionInput.ts"

/** The strict schema of a request, as its route looks at it. */
export interface StrictSchema {
  /** Whether the replies of a target are known to fit it. */
  readonly isBoundBy: (target: Target) => boolean
  /** The refusal of a request for which its route has no target that binds it. */
  readonly unbound: () => GatewayError
}

/** The facts of a client's contract. An app's own style has those of chat completions. */
const factsOf = (client: FamilyName | undefined) => contracts[client ?? commonWords].facts

/** Whether a client is promised that its reply fits a schema. */
const isStrict = ({ output }: Conversation, client: FamilyName | undefined): boolean =>
  output?._tag === "JsonSchema" && (output.strict === true || factsOf(client).bindsEverySchema)

const namesOf = (targets: ReadonlyArray<Target>): string => targets.map(targetName).join(", ")

/** The strict schema of a request; `undefined` without one. */
export const strictSchemaOf = (
  { config, conversation, model: { id, targets }, request: { style } }: ServedInput
): StrictSchema | undefined => {
  const client = contractOfStyle(style)?.id
  if (!isStrict(conversation, client)) return undefined
  const catalogue = catalogueOf(config)
  const isBoundBy = (target: Target) => catalogue.ofTarget(target).schemas?.value === "binding"
  return {
    isBoundBy,
    unbound: () => {
      const { schema: field } = factsOf(client).words
      const binding = targets.filter(isBoundBy)
      const which = binding.length === 0
        ? `none of its models is known to bind schemas: ${namesOf(targets)}`
        : `of its models, this request may not use those that bind schemas: ${namesOf(binding)}`
      return invalidRequest(`${field}: the route "${id}" keeps strict schemas, and ${which}`, field)
    }
  }
}

/** A conversation with its schema as a server is asked for it. */
interface AskedSchema {
  readonly conversation: Conversation
  /** The name that most contracts have for the schema, where the server does not bind it. */
  readonly changed: ReadonlyArray<string>
  /** The schema is asked for as a tool that the model has to call. */
  readonly byTool: boolean
}

/** The conversation with its strict schema as a server binds it, or else what comes closest. */
export const schemaWithin = (
  conversation: Conversation,
  { schemas, tools }: SourcedFacts,
  client: FamilyName | undefined,
  server: FamilyName | undefined
): AskedSchema => {
  const { output } = conversation
  const bound = { conversation, changed: [], byTool: false }
  if (schemas === undefined || output?._tag !== "JsonSchema" || !isStrict(conversation, client)) return bound
  if (schemas.value === "binding") {
    if (output.strict === true || server === undefined || contracts[server].facts.bindsEverySchema) return bound
    // A server whose own list says that it binds schemas takes each one as a strict one.
    if (schemas.source === "server" || isStrictSchema(output.schema)) {
      return { ...bound, conversation: { ...conversation, output: { ...output, strict: true } } }
    }
  }
  const { thinking, vendorTools } = conversation
  // Servers refuse a forced call while the model thinks, which is left out for clients of other contracts alone.
  const mayForce = client !== server || thinking === undefined || thinking.mode === "off"
  const byTool = schemas.value === "none" && tools?.value !== false && server !== undefined && mayForce &&
    conversation.tools.length === 0 && vendorTools === undefined && !isWholeFor(conversation, server)
  return { conversation, changed: ["response_format"], byTool }
}

/** The driver that asks for the schema of a reply as a tool which the model has to call. The call's arguments are the text of the reply. */
export const askedByTool = (driver: Driver): Driver => ({
  ...driver,
  complete: (request) => {
    const accepted = acceptedConversation(request.conversation, [{ _tag: "NoSchema" }])
    return Effect.map(
      driver.complete({ ...request, conversation: accepted.conversation }),
      (reply) => callersReply(reply, accepted, request)
    )
  }
})
