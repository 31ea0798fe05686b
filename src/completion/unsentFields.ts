/**
 * The parts of a request that the driver of an attempt does not send: noted for the caller, or refused if the reply would be of
 * another kind without them.
 */
import type { RequestWords } from "../contracts/Contract.ts"
import { contractOfStyle } from "../contracts/contractOf.ts"
import { contracts } from "../contracts/contracts.ts"
import { commonWords } from "../contracts/names.ts"
import type { BodyVendorFields } from "../contracts/shared/BodyVendorFields.ts"
import { ignorableFields, isRequired } from "../contracts/shared/chatFields.ts"
import type { Conversation, Part, Sampling, Thinking, Turn } from "../domain/Conversation.ts"
import type { VendorInputs } from "../domain/Embeddings.ts"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { nearestEffort, type SourcedFacts } from "../domain/modelFacts.ts"
import type { UpstreamModel } from "../domain/UpstreamModel.ts"
import { type FamilyName, isWholeFor } from "../domain/VendorFields.ts"
import { askedBy, type Driver, type Sends, sendsNothing } from "../upstream/Upstream.ts"
import { noteIgnored, noteMoreIgnored, replyPath } from "./ignored.ts"
import type { Request } from "./Request.ts"
import type { RequestStats } from "./RequestStats.ts"
import { schemaWithin } from "./strictSchemas.ts"

/** The limits of output. */
const limitKeys = ["maxTokens", "maxCompletionTokens"] as const

/** Parameters that a driver without sampling leaves to its upstream, with their fields in the styles but content generation. */
const samplingFields = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  logitBias: "logit_bias"
} as const satisfies { readonly [Key in Exclude<keyof Sampling, typeof limitKeys[number]>]: string }

/** The words of requests by a style. An app's own style has those of chat completions. */
const wordsOf = (style: string | undefined): RequestWords =>
  (contractOfStyle(style) ?? contracts[commonWords]).facts.words

/** The field of the limit of output in a style. */
export const limitField = (style: string | undefined): string => wordsOf(style).outputLimit

const samplingKeys = Object.keys(samplingFields) as ReadonlyArray<keyof typeof samplingFields>

/** Notes the sampling parameters of a request that its driver does not send. */
const noteUnsampled = (
  conversation: Conversation,
  model: UpstreamModel,
  { sends }: Driver,
  { stats, style }: Request
): void => {
  const { sampling } = conversation
  const { leastOutput = 0 } = sends
  const words = wordsOf(style)
  for (const key of limitKeys) {
    if ((sampling[key] ?? Infinity) >= leastOutput || sends.sampling(key, model, conversation)) continue
    noteIgnored(stats, words.limitPath(key))
  }
  for (const key of samplingKeys) {
    if (sampling[key] === undefined || sends.sampling(key, model, conversation)) continue
    noteIgnored(stats, words.samplingPath(key, samplingFields[key]))
  }
}

/** What a driver sends. */
type Sending = Pick<Driver, "contract" | "sends">

/** Stands for the driver where nothing is sent. */
export const noDriver: Sending = { contract: undefined, sends: sendsNothing }

/** Tells which vendor fields of a contract the driver sends; `undefined` for those of other contracts. */
const sendsOf = (
  { contract, sends }: Sending,
  bodyVendorFields: BodyVendorFields | undefined
): Sends["vendorFields"] | undefined =>
  bodyVendorFields !== undefined && bodyVendorFields.vendor === contract ? sends.vendorFields : undefined

/** Notes the fields that the driver does not send. Returns the error of the first that the reply depends on. */
export const noteUnpassed = (
  fields: NonNullable<Conversation["serverFields"]>,
  { sends }: Sending,
  { stats, style }: Request,
  sendsVendorFields?: Sends["vendorFields"],
  conversation?: Conversation
): GatewayError | undefined => {
  const { paths } = wordsOf(style)
  for (const name of Object.keys(fields)) {
    const said = paths.get(name) ?? name
    if (sends.fields(name, conversation) || sendsVendorFields?.(said.split(".", 1)[0]!, "") === true) {
      continue
    }
    if (isRequired(name)) return invalidRequest(`${name}: the upstream makes replies of text only`, name)
    if (!ignorableFields.has(name)) noteIgnored(stats, said)
  }
  return undefined
}

/** Notes the vendor's fields of inputs that are not sent. `sendsTask`: the server gets their task as its `input_type`. */
export const noteVendorInputs = (own: VendorInputs | undefined, stats: RequestStats, sendsTask = false): void => {
  for (const path of sendsTask ? [] : own?.task?.paths ?? []) noteIgnored(stats, path)
  for (const path of own?.paths ?? []) noteIgnored(stats, path)
}

/** Notes the caller's fields about thinking, unless the driver sends all that they say. */
export const noteUnsaidThinking = (
  thinking: Thinking,
  model: UpstreamModel,
  { sends }: Sending,
  stats: Pick<RequestStats, "ignored" | "ignoredMore">,
  conversation?: Conversation
): void => {
  if (sends.thinking(model, thinking, conversation)) return
  for (const field of thinking.fields ?? []) noteIgnored(stats, field)
}

/**
 * Notes the vendor's fields and elements, and the server's fields, that the driver does not send. Returns the error of the first that the
 * reply depends on. Without a driver, nothing is sent.
 */
export const noteUnsentFields = (
  conversation: Conversation,
  request: Request,
  driver: Sending = noDriver
): GatewayError | undefined => {
  const { bodyVendorFields, serverFields, untranslated } = conversation
  const sends = sendsOf(driver, bodyVendorFields)
  const isWhole = isWholeFor(conversation, driver.contract)
  if (untranslated !== undefined && !isWhole) {
    if (untranslated.refused !== undefined) return untranslated.refused
    for (const path of untranslated.paths) noteIgnored(request.stats, path)
  }
  if (bodyVendorFields !== undefined && !isWhole) {
    const { more, paths, refused } = bodyVendorFields.unsent(sends)
    if (refused !== undefined) return refused
    for (const path of paths) noteIgnored(request.stats, path)
    if (more > 0) noteMoreIgnored(request.stats, more)
  }
  return serverFields === undefined ? undefined : noteUnpassed(serverFields, driver, request, sends, conversation)
}

/** Notes how the history that the server gets differs. Returns the error if nothing is left of it. */
const noteRepairs = (
  conversation: Conversation,
  driver: Driver,
  { stats, style }: Request
): GatewayError | undefined => {
  const contract = askedBy(driver)
  if (contract === undefined) return undefined
  const isWhole = isWholeFor(conversation, driver.contract)
  const { found, isEmpty, unread } = contracts[contract].facts.repairs(conversation, isWhole)
  const { turns: field } = wordsOf(style)
  const { places } = conversation
  const placeOf = (turn: number) => places === undefined || isWhole ? `${field}[${turn}]` : places[turn] ?? field
  if (isEmpty) return invalidRequest(`${field}: has nothing for the model to read`, field)
  if (unread !== undefined && contractOfStyle(style)?.id !== contract) {
    return invalidRequest(`${placeOf(unread.turn)}: ${unread.what} before this server`, placeOf(unread.turn))
  }
  for (const { turn, what } of found) noteIgnored(stats, `${placeOf(turn)}: ${what}`)
  return undefined
}

/** The error of a request of several choices, if a reply of the driver has one. Only requests of chat completions ask for several, by `n`. */
const choicesFault = ({ choices }: Conversation, { contract }: Driver): GatewayError | undefined =>
  choices === 1 || (contract !== undefined && choices <= contracts[contract].facts.mostChoices)
    ? undefined
    : invalidRequest("n: a reply of this model's upstream has 1 choice; send n: 1", "n")

/** Notes all parts of a conversation that the driver does not send. Returns the error of the first that the reply depends on. */
export const noteUnsent = (
  conversation: Conversation,
  model: UpstreamModel,
  driver: Driver,
  request: Request
): GatewayError | undefined => {
  const { vendorFields, thinking } = conversation
  const isOwn = vendorFields !== undefined && vendorFields.vendor === driver.contract
  if (thinking !== undefined && !isOwn) noteUnsaidThinking(thinking, model, driver, request.stats, conversation)
  noteUnsampled(conversation, model, driver, request)
  return choicesFault(conversation, driver) ?? noteRepairs(conversation, driver, request) ??
    noteUnsentFields(conversation, request, driver)
}

/** The names of fields by their paths in the contracts that have them elsewhere. */
const namesByPath: ReadonlyMap<string, string> = new Map(
  Object.values(contracts).flatMap(({ facts }) =>
    Array.from(facts.words.paths, ([name, path]) => [path, name] as const)
  )
)

const limitNames = /^(?:max_(?:completion_|output_)?tokens|maxOutputTokens)$/

/**
 * The names of fields that were not sent as the request has them, because the server refuses them: in the client's words where it has written
 * them, or else in those of what is sent. Parts of the reply keep their names.
 */
export const changedNames = (
  paths: ReadonlyArray<string>,
  { sampling, serverFields = {}, thinking }: Conversation,
  { style }: Pick<Request, "style">
): ReadonlyArray<string> => {
  const words = wordsOf(style)
  return paths.flatMap((path) => {
    const name = path.split(".").at(-1)!
    if (path.startsWith(`${replyPath}.`)) return path
    const hasLimit = sampling.maxCompletionTokens !== undefined || sampling.maxTokens !== undefined
    if (hasLimit && limitNames.test(name)) {
      return words.limitPath(sampling.maxCompletionTokens === undefined ? "maxTokens" : "maxCompletionTokens")
    }
    const key = samplingKeys.find((key) => samplingFields[key] === name || key === name)
    if (key !== undefined) return words.samplingPath(key, samplingFields[key])
    if (path === "tool_choice") return words.toolChoice
    if (path === "response_format") return words.schema
    if (/effort|thinking/i.test(path) && thinking?.fields !== undefined) return thinking.fields
    const written = namesByPath.get(path) ?? path
    return Object.hasOwn(serverFields, written) ? words.paths.get(written) ?? written : `sent.${path}`
  })
}

/** A conversation within the facts, and the paths of what was changed. */
interface Fitting {
  readonly conversation: Conversation
  readonly changed: ReadonlyArray<string>
  /** The schema of its reply is asked for as a tool that the model has to call. */
  readonly byTool: boolean
}

/**
 * The conversation within the facts of a target's model: a limit of output above its most, and an effort that it does not have, leave as the nearest
 * that it takes. What a client writes in the server's own contract stays as it is. A strict schema is asked for as the server binds it.
 * `client` and `server` are the contracts that they speak.
 */
export const withinFacts = (
  conversation: Conversation,
  facts: () => SourcedFacts,
  client: FamilyName | undefined,
  server: FamilyName | undefined
): Fitting => {
  const { changed, conversation: within } = client === server || server === undefined
    ? { conversation, changed: [] }
    : withinLimits(conversation, facts)
  if (within.output === undefined) return { conversation: within, changed, byTool: false }
  const schema = schemaWithin(within, facts(), client, server)
  return { ...schema, changed: [...changed, ...schema.changed] }
}

/** The conversation with limits of output and efforts that a model takes. */
const withinLimits = (conversation: Conversation, facts: () => SourcedFacts): Omit<Fitting, "byTool"> => {
  const { efforts, max_output_tokens: most } = facts()
  const { sampling, thinking } = conversation
  const { maxCompletionTokens = 0, maxTokens = 0 } = sampling
  const isAbove = most !== undefined && Math.max(maxCompletionTokens, maxTokens) > most.value
  const effort = thinking?.effort
  const levels = efforts?.value ?? []
  const nearest =
    effort === undefined || effort === "none" || levels.length === 0 || levels.some((each) => each === effort)
      ? undefined
      : nearestEffort(effort, levels)
  if (!isAbove && nearest === undefined) return { conversation, changed: [] }
  const limits = isAbove
    ? {
      ...(maxTokens === 0 ? {} : { maxTokens: Math.min(maxTokens, most.value) }),
      ...(maxCompletionTokens === 0 ? {} : { maxCompletionTokens: Math.min(maxCompletionTokens, most.value) })
    }
    : {}
  return {
    conversation: {
      ...conversation,
      sampling: { ...sampling, ...limits },
      ...(thinking === undefined || nearest === undefined ? {} : { thinking: { ...thinking, effort: nearest } })
    },
    changed: [...(isAbove ? ["max_tokens"] : []), ...(nearest === undefined ? [] : ["effort"])]
  }
}

const isForOthers = (part: Part): boolean => part._tag === "Text" && part.text === "" && part.vendorFields !== undefined

/** True if the conversation begins with a text that only servers of another contract get. */
const beginsForOthers = ({ turns: [first] }: Conversation, contract: Driver["contract"]): boolean =>
  first?.parts.some((part) => isForOthers(part) && part.vendorFields?.vendor !== contract) === true

/**
 * The conversation for a driver: without texts that have nothing but fields of another family, such as a signature alone, and without
 * tools that its caller has not loaded yet.
 */
export const forDriver = (conversation: Conversation, { contract }: Pick<Driver, "contract">): Conversation => {
  const { bodyVendorFields, turns } = conversation
  const isForeign = bodyVendorFields !== undefined && bodyVendorFields.vendor !== contract
  if (!isForeign && !beginsForOthers(conversation, contract)) return conversation
  const spoken = turns.flatMap((turn): ReadonlyArray<Turn> => {
    if (!turn.parts.some(isForOthers)) return [turn]
    const parts = turn.parts.filter((part) => !isForOthers(part))
    return parts.length === 0 ? [] : [{ ...turn, parts }]
  })
  return {
    ...conversation,
    turns: spoken,
    tools: isForeign ? contracts[bodyVendorFields.vendor].facts.declaredElsewhere(conversation) : conversation.tools
  }
}
