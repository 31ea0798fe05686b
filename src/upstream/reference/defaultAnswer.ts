/**
 * What the reference upstream answers without a script: friendly, and the same for the same conversation.
 */
import type { PromptTurn } from "./prompt.ts"
import type { ReplyBuilder } from "./ReplyBuilder.ts"
import { searchResults } from "./searchResults.ts"

const quote = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  const characters = Array.from(line)
  return characters.length <= 200 ? `“${line}”` : `“${characters.slice(0, 200).join("")}…”`
}

const plural = (count: number, noun: string): string => count === 1 ? `1 ${noun}` : `${count} ${noun}s`

/** Writes the default answer to `question`, which is the last user turn of `turns` without its directives. */
export const answerByDefault = (question: string, turns: ReadonlyArray<PromptTurn>, reply: ReplyBuilder): void => {
  const last = turns.at(-1)
  if (last?.role === "tool") {
    reply.think(`The tool has answered: ${quote(last.text)}. I pass it on.`)
    reply.say(`The tool answered: ${quote(last.text)}`)
    return
  }
  const asked = turns.filter((turn) => turn.role === "user")
  const words = question.split(/\s+/).filter((word) => word !== "").length
  reply.think(
    `The user wrote ${plural(words, "word")}: ${quote(question)}. There is no model here to ask, ` +
      `so I repeat the question and say what I am.`
  )
  if (reply.flags.search) {
    reply.search(quote(question), searchResults(quote(question), 3))
    reply.say(
      `I looked for ${quote(question)} and found three pages[citation:1][citation:2][citation:3]. ` +
        `The first one[reference:1] repeats the question, as I do. `
    )
  } else {
    reply.say(`You said: ${quote(question)}. `)
  }
  const before = asked.at(-2)
  if (before !== undefined) {
    reply.say(`This is turn ${asked.length} of our conversation; before it you said: ${quote(before.text)}. `)
  }
  reply.say(
    "I am the built-in upstream: I give every prompt the same answer each time, without a model behind it. " +
      "Configure `upstream` to reach a real one."
  )
}
