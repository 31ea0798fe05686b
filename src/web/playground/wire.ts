/**
 * Requests of each style, as the vendor's SDK sends them.
 */
import { parsed, record } from "../state/json.ts"
import type { Prompt, ToolDeclaration, Turn } from "./conversation.ts"
import { localTools } from "./tools.ts"

interface WireRequest {
  /** Relative to the gateway's address. */
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
}

const functions = ({ ownTools, tools }: Prompt): ReadonlyArray<ToolDeclaration> => [
  ...tools ? localTools.map(({ description, name, parameters }) => ({ name, description, parameters })) : [],
  ...ownTools
]

/** A field that is left out while its value is `undefined`. */
const given = (name: string, value: unknown): Readonly<Record<string, unknown>> =>
  value === undefined ? {} : { [name]: value }

/** The type and the Base64 of a `data:` address. */
const dataOf = (address: string) => {
  const [, type = "", data = ""] = /^data:([^;,]*)[^,]*,(.*)$/s.exec(address) ?? []
  return { type, data }
}

/** The declared tools; nothing without any. */
const toolsOf = (prompt: Prompt, of: (tool: ToolDeclaration) => object) => {
  const declared = functions(prompt)
  return declared.length === 0 ? {} : { tools: declared.map(of) }
}

const configOf = (config: Readonly<Record<string, unknown>>) =>
  Object.keys(config).length === 0 ? {} : { generationConfig: config }

const chat = (prompt: Prompt): WireRequest => ({
  path: "/v1/chat/completions",
  body: {
    model: prompt.model,
    messages: [
      ...(prompt.system === "" ? [] : [{ role: "system", content: prompt.system }]),
      ...prompt.turns.map((turn) => {
        if (turn.role === "user") {
          return {
            role: "user",
            content: turn.image === undefined
              ? turn.text
              : [{ type: "text", text: turn.text }, { type: "image_url", image_url: { url: turn.image } }]
          }
        }
        if (turn.role === "tool") return { role: "tool", tool_call_id: turn.call.id, content: turn.result }
        return {
          role: "assistant",
          content: turn.text === "" ? null : turn.text,
          ...(turn.calls.length === 0 ? {} : {
            tool_calls: turn.calls.map((call) => ({
              id: call.id,
              type: "function",
              function: { name: call.name, arguments: call.arguments }
            }))
          })
        }
      })
    ],
    stream: prompt.stream,
    ...(prompt.stream ? { stream_options: { include_usage: true } } : {}),
    ...given("temperature", prompt.temperature),
    ...given("max_completion_tokens", prompt.maxTokens),
    ...(prompt.json ? { response_format: { type: "json_object" } } : {}),
    ...toolsOf(prompt, (each) => ({ type: "function", function: each }))
  }
})

const responses = (prompt: Prompt): WireRequest => ({
  path: "/v1/responses",
  body: {
    model: prompt.model,
    ...(prompt.system === "" ? {} : { instructions: prompt.system }),
    input: prompt.turns.flatMap((turn): ReadonlyArray<unknown> => {
      if (turn.role === "user") {
        return [{
          role: "user",
          content: turn.image === undefined
            ? turn.text
            : [{ type: "input_text", text: turn.text }, { type: "input_image", image_url: turn.image }]
        }]
      }
      if (turn.role === "tool") return [{ type: "function_call_output", call_id: turn.call.id, output: turn.result }]
      return [
        ...(turn.text === "" ? [] : [{ role: "assistant", content: turn.text }]),
        ...turn.calls.map((call) => ({
          type: "function_call",
          call_id: call.id,
          name: call.name,
          arguments: call.arguments
        }))
      ]
    }),
    stream: prompt.stream,
    store: false,
    ...given("temperature", prompt.temperature),
    ...given("max_output_tokens", prompt.maxTokens),
    ...(prompt.json ? { text: { format: { type: "json_object" } } } : {}),
    ...toolsOf(prompt, (each) => ({ type: "function", ...each, strict: false }))
  }
})

/** Merges adjacent turns of one role into one message, as the style requires. */
const grouped = <A>(
  turns: ReadonlyArray<Turn>,
  of: (turn: Turn) => { readonly role: string; readonly parts: ReadonlyArray<A> }
): ReadonlyArray<{ readonly role: string; readonly parts: ReadonlyArray<A> }> => {
  const found: Array<{ readonly role: string; readonly parts: Array<A> }> = []
  for (const turn of turns) {
    const { parts, role } = of(turn)
    const last = found.at(-1)
    if (parts.length === 0) continue
    if (last?.role === role) last.parts.push(...parts)
    else found.push({ role, parts: [...parts] })
  }
  return found
}

const messages = (prompt: Prompt): WireRequest => ({
  path: "/v1/messages",
  body: {
    model: prompt.model,
    max_tokens: prompt.maxTokens ?? 8192,
    ...given("temperature", prompt.temperature),
    ...(prompt.system === "" ? {} : { system: prompt.system }),
    messages: grouped<unknown>(prompt.turns, (turn) => {
      if (turn.role === "user") {
        const { data, type } = dataOf(turn.image ?? "")
        const picture = { type: "image", source: { type: "base64", media_type: type, data } }
        return {
          role: "user",
          parts: [{ type: "text", text: turn.text }, ...turn.image === undefined ? [] : [picture]]
        }
      }
      if (turn.role === "tool") {
        return { role: "user", parts: [{ type: "tool_result", tool_use_id: turn.call.id, content: turn.result }] }
      }
      return {
        role: "assistant",
        parts: [
          ...(turn.text === "" ? [] : [{ type: "text", text: turn.text }]),
          ...turn.calls.map((call) => ({
            type: "tool_use",
            id: call.id,
            name: call.name,
            input: record(parsed(call.arguments))
          }))
        ]
      }
    }).map(({ parts, role }) => ({ role, content: parts })),
    stream: prompt.stream,
    ...toolsOf(prompt, ({ parameters, ...each }) => ({ ...each, input_schema: parameters }))
  }
})

const generate = (prompt: Prompt): WireRequest => ({
  path: `/v1beta/models/${encodeURIComponent(prompt.model)}:${
    prompt.stream ? "streamGenerateContent?alt=sse" : "generateContent"
  }`,
  body: {
    ...(prompt.system === "" ? {} : { systemInstruction: { parts: [{ text: prompt.system }] } }),
    contents: grouped<unknown>(prompt.turns, (turn) => {
      if (turn.role === "user") {
        const { data, type } = dataOf(turn.image ?? "")
        const picture = { inlineData: { mimeType: type, data } }
        return { role: "user", parts: [{ text: turn.text }, ...turn.image === undefined ? [] : [picture]] }
      }
      if (turn.role === "tool") {
        const { id, name } = turn.call
        return { role: "user", parts: [{ functionResponse: { id, name, response: { result: turn.result } } }] }
      }
      return {
        role: "model",
        parts: [
          ...(turn.text === "" ? [] : [{ text: turn.text }]),
          ...turn.calls.map((call) => ({
            functionCall: { id: call.id, name: call.name, args: record(parsed(call.arguments)) }
          }))
        ]
      }
    }),
    ...configOf({
      ...given("temperature", prompt.temperature),
      ...given("maxOutputTokens", prompt.maxTokens),
      ...(prompt.json ? { responseMimeType: "application/json" } : {})
    }),
    ...(functions(prompt).length === 0 ? {} : {
      tools: [{
        functionDeclarations: functions(prompt).map(({ parameters, ...each }) => ({
          ...each,
          parametersJsonSchema: parameters
        }))
      }]
    })
  }
})

const wires = { chat, responses, messages, generate } as const

/** The request in its style. */
export const wireOf = (prompt: Prompt): WireRequest => wires[prompt.style](prompt)
