/** A whole reply as its client sends it back: in the history of the next request, with results of its calls. */
import type { StyleName } from "../../support/styleClients.ts"

type Fields = { readonly [field: string]: unknown }

/** The JSON of a reply. */
export const parsed = (text: string): Fields => JSON.parse(text) as Fields

const records = (value: unknown): ReadonlyArray<Fields> => Array.isArray(value) ? value as ReadonlyArray<Fields> : []

const record = (value: unknown): Fields => typeof value === "object" && value !== null ? value as Fields : {}

const results = { chat: "Rain", responses: "Rain", messages: "Rain", generate: { output: "Rain" } }

/** The fields of the next request, by the style. */
export const sentBack: { readonly [Style in StyleName]: (reply: Fields) => Fields } = {
  chat: ({ choices }) => {
    const message = record(records(choices)[0]?.["message"])
    return {
      messages: [
        { role: "user", content: "Go" },
        message,
        ...records(message["tool_calls"]).map(({ id }) => ({ role: "tool", tool_call_id: id, content: results.chat })),
        { role: "user", content: "So?" }
      ]
    }
  },
  responses: ({ output }) => ({
    store: false,
    input: [
      { role: "user", content: "Go" },
      ...records(output),
      ...records(output).filter(({ type }) => type === "function_call").map(({ call_id }) => ({
        type: "function_call_output",
        call_id,
        output: results.responses
      })),
      { role: "user", content: "So?" }
    ]
  }),
  messages: ({ content }) => ({
    messages: [
      { role: "user", content: "Go" },
      { role: "assistant", content },
      {
        role: "user",
        content: [
          ...records(content).filter(({ type }) => type === "tool_use").map(({ id }) => ({
            type: "tool_result",
            tool_use_id: id,
            content: results.messages
          })),
          { type: "text", text: "So?" }
        ]
      }
    ]
  }),
  generate: ({ candidates }) => {
    const content = record(records(candidates)[0]?.["content"])
    return {
      contents: [
        { role: "user", parts: [{ text: "Go" }] },
        content,
        {
          role: "user",
          parts: [
            ...records(content["parts"]).flatMap(({ functionCall }) =>
              functionCall === undefined
                ? []
                : [{
                  functionResponse: {
                    id: record(functionCall)["id"],
                    name: record(functionCall)["name"],
                    response: results.generate
                  }
                }]
            ),
            { text: "So?" }
          ]
        }
      ]
    }
  }
}
