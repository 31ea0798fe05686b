/**
 * Collects a reply of a style from the events of a stream or a whole body, by the contract of the style.
 */
import { clientReader, type UpstreamEvent } from "../../contracts.ts"
import { parsed, record, string } from "../state/json.ts"
import type { Answer, Call, Style } from "./conversation.ts"

/** The message of an error in any style's shape; `undefined` if the value is not an error. */
export const errorOf = (value: unknown): string | undefined => {
  const { detail, error } = record(value)
  const { code, message = detail, type } = record(error)
  if (typeof message !== "string" || message === "") return undefined
  const name = string(code) || string(type)
  return name === "" ? message : `${name}: ${message}`
}

/** Collects a reply of a style. */
export const collect = (style: Style) => {
  const reader = clientReader(style)!
  let text = ""
  let reasoning = ""
  let finish: string | undefined
  let error: string | undefined
  let tokens: Answer["tokens"]
  /** Calls by their index in the reply. */
  const calls = new Map<number, Call>()
  const take = (read: (out: Array<UpstreamEvent>) => void) => {
    const events: Array<UpstreamEvent> = []
    read(events)
    for (const event of events) {
      switch (event._tag) {
        case "UpstreamText":
          text += event.text
          break
        case "UpstreamReasoning":
          reasoning += event.text
          break
        case "UpstreamCall": {
          const { arguments: before, id, name } = calls.get(event.index) ?? { id: "", name: "", arguments: "" }
          calls.set(event.index, {
            id: id || (event.id ?? ""),
            name: name || (event.name ?? ""),
            arguments: before + event.argumentsDelta
          })
          break
        }
        case "UpstreamUsage": {
          const { completionTokens = tokens?.completion ?? 0, promptTokens = tokens?.prompt ?? 0 } = event.usage
          tokens = { prompt: promptTokens, completion: completionTokens }
          break
        }
        case "UpstreamFinish":
          finish = reader.finishNames[event.stopSequence === undefined ? event.reason : "stop_sequence"]
      }
    }
  }
  return {
    /** Adds an event, or a body that is no stream. */
    take: (data: string, event?: { readonly event: string | undefined }): void => {
      const found = errorOf(parsed(data))
      if (found !== undefined) error = found
      else take((out) => event === undefined ? reader.pushWhole(data, out) : reader.push({ ...event, data }, out))
    },
    /** The reply is over. */
    end: (): void => {
      if (error !== undefined) return
      take(reader.end)
      error = reader.failure()
    },
    /** The reply so far. */
    answer: (): Answer => ({
      text,
      reasoning,
      finish,
      error,
      tokens,
      calls: [...calls.values()].map((call, index): Call => ({
        ...call,
        id: call.id || `call_${index}`,
        arguments: call.arguments || "{}"
      }))
    })
  }
}
