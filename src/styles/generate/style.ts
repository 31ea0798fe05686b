/**
 * The content-generation style.
 */
import { functions } from "../shared/ask.ts"
import type { Ask, Asked, Style } from "../Style.ts"
import { GenerateGroup } from "./Api.ts"

export const generate = {
  group: GenerateGroup,
  basePaths: ["/v1beta"],
  operation: "generate_content",
  ask: (ask: Ask): Asked => [
    `/v1beta/models/${encodeURIComponent(ask.model)}:${
      ask.stream ? "streamGenerateContent?alt=sse" : "generateContent"
    }`,
    {
      contents: [{ role: "user", parts: [{ text: ask.text }] }],
      tools: ask.tools.length === 0
        ? []
        : [{
          functionDeclarations: functions(ask).map(({ parameters, ...tool }) => ({
            ...tool,
            parametersJsonSchema: parameters
          }))
        }]
    }
  ]
} satisfies Style
