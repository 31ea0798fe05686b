/**
 * A Responses server that refuses what the vendor refuses: seals and ids of other organisations, thinking that it has not kept, items
 * without their thinking, responses that it does not have, and results without their call. Each API key is an organisation.
 */
import {
  type Answer,
  events,
  json,
  messageItem,
  opening,
  responseOf,
  type SeenRequest,
  streamed,
  whole
} from "./responsesServer.ts"

type Fields = { readonly [field: string]: unknown }

const itemsOf = (body: Fields): ReadonlyArray<Fields> =>
  Array.isArray(body["input"])
    ? body["input"].filter((item): item is Fields => typeof item === "object" && item !== null)
    : []

/** All values of a field, at any depth. */
export const valuesOf = (name: string, value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value)
    ? value.flatMap((each) => valuesOf(name, each))
    : typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([field, each]) => field === name ? [each] : valuesOf(name, each))
    : []

interface Stored {
  readonly organization: string
  readonly items: ReadonlyArray<Fields>
}

const fault = (status: number, code: string | null, message: string): Answer =>
  json(status, { error: { type: "invalid_request_error", code, message, param: null } })

export interface StrictOptions {
  /** The organisation of a key. */
  readonly organizationOf?: (key: string) => string
  /** The server says its organisation in a header. */
  readonly saysOrganization?: boolean
  /** Refusals come within the reply: as its end, or as an error in its place. */
  readonly refusesWithin?: "failed" | "error" | undefined
  /** What the server says of a request after its checks; a call of the tool `look`, then a text, without it. */
  readonly output?: (body: Fields, made: Made) => ReadonlyArray<Fields>
  /** The server keeps no responses. */
  readonly isForgetful?: boolean
}

/** Makes items with the ids and the seals of an organisation. */
export interface Made {
  readonly thinking: (isSealed: boolean) => Fields
  readonly call: () => Fields
  readonly text: (text: string) => Fields
}

/** Makes what the server answers. */
export const strictResponses = (options: StrictOptions = {}) => {
  const { isForgetful = false, organizationOf = (key) => key, refusesWithin, saysOrganization } = options
  let count = 0
  const makers = new Map<string, string>()
  /** The thinking that an item followed, by the ids of both. */
  const thinkingBefore = new Map<string, string>()
  const kept = new Map<string, Stored>()
  const thoughts = new Map<string, string>()

  const madeBy = (organization: string): Made => {
    const id = (kind: string) => {
      const made = `${kind}_${organization}_${++count}`
      makers.set(made, organization)
      return made
    }
    return {
      thinking: (isSealed) => ({
        id: id("rs"),
        type: "reasoning",
        summary: [{ type: "summary_text", text: "Hm" }],
        ...(isSealed ? { encrypted_content: `${"x".repeat(100)}${organization}-${++count}` } : {})
      }),
      call: () => ({
        id: id("fc"),
        type: "function_call",
        call_id: `call_${++count}`,
        name: "look",
        arguments: "{}",
        status: "completed"
      }),
      text: (text) => messageItem(text, { id: id("msg") })
    }
  }

  const conversationOf = (body: Fields, organization: string): ReadonlyArray<Fields> | undefined => {
    const previous = body["previous_response_id"]
    if (typeof previous !== "string") return itemsOf(body)
    const found = kept.get(previous)
    return found?.organization === organization ? [...found.items, ...itemsOf(body)] : undefined
  }

  const refusal = (body: Fields, organization: string): Answer | undefined => {
    const items = conversationOf(body, organization)
    if (items === undefined) {
      return fault(
        400,
        "previous_response_not_found",
        `Previous response with id '${String(body["previous_response_id"])}' not found.`
      )
    }
    const ids = new Set(items.map(({ id }) => id))
    const calls = new Set(items.filter(({ type }) => type === "function_call").map(({ call_id }) => call_id))
    for (const item of items) {
      const { call_id, encrypted_content: seal, id, type } = item
      if (typeof seal === "string" && !seal.includes(`${organization}-`)) {
        return fault(400, "invalid_encrypted_content", "The encrypted content could not be verified.")
      }
      if (typeof id === "string" && makers.has(id) && makers.get(id) !== organization) {
        return fault(404, null, `Item with id '${id}' not found. Items are not persisted when \`store\` is false.`)
      }
      if (type === "reasoning" && typeof seal !== "string" && thoughts.get(String(id)) !== organization) {
        return fault(
          404,
          null,
          `Item with id '${String(id)}' not found. Items are not persisted when \`store\` is false.`
        )
      }
      const before = thinkingBefore.get(String(id))
      if (before !== undefined && !ids.has(before)) {
        return fault(
          400,
          null,
          `Item '${String(id)}' of type '${
            String(type)
          }' was provided without its required 'reasoning' item: '${before}'.`
        )
      }
      if (type === "function_call_output" && !calls.has(call_id)) {
        return fault(400, null, `No tool call found for function call output with call_id ${String(call_id)}.`)
      }
    }
    return undefined
  }

  const usual = (body: Fields, made: Made): ReadonlyArray<Fields> => {
    const include = Array.isArray(body["include"]) ? body["include"] as ReadonlyArray<unknown> : []
    const last = itemsOf(body).at(-1)
    const thinking = made.thinking(include.includes("reasoning.encrypted_content"))
    return [thinking, last?.["type"] === "function_call_output" ? made.text("It is there") : made.call()]
  }

  const within = (refused: Answer, body: Fields): Answer => {
    const { error } = JSON.parse(String(refused.pieces?.[0])) as { readonly error: Fields }
    const failed = responseOf([], { status: "failed", error, usage: null })
    if (body["stream"] !== true) return whole(failed)
    return refusesWithin === "failed"
      ? streamed(failed)
      : { pieces: [events(...opening(failed), { ...error, type: "error", sequence_number: 2 })] }
  }

  const answer = (request: SeenRequest): Answer => {
    const organization = organizationOf(request.key ?? "")
    const headers = saysOrganization === true ? { "openai-organization": organization } : {}
    if (request.method === "DELETE") {
      const id = request.path.split("/").at(-1)!
      return kept.get(id)?.organization === organization && kept.delete(id)
        ? json(200, { id, object: "response", deleted: true })
        : fault(404, null, "There is no such response")
    }
    const { body } = request
    const refused = refusal(body, organization)
    if (refused !== undefined) return refusesWithin === undefined ? refused : within(refused, body)
    const items = conversationOf(body, organization)!
    const output = (options.output ?? usual)(body, madeBy(organization))
    let thinking: unknown
    for (const { id, type } of output) {
      if (type === "reasoning") thinking = id
      else if (typeof thinking === "string") thinkingBefore.set(String(id), thinking)
    }
    const isStored = body["store"] !== false
    const id = `resp_${organization}_${++count}`
    if (isStored && !isForgetful) {
      kept.set(id, { organization, items: [...items, ...output] })
      for (const item of output) if (item["type"] === "reasoning") thoughts.set(String(item["id"]), organization)
    }
    const previous = body["previous_response_id"] ?? null
    const response = responseOf(output, { id, store: isStored, previous_response_id: previous })
    const answer = body["stream"] === true ? streamed(response) : whole(response)
    return { ...answer, headers: { ...answer.headers, ...headers } }
  }
  return { answer, kept }
}
