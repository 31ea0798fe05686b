/**
 * Holds a reply to the caller's `tool_choice`: with `required` or a forced function, text waits until a call starts, and a
 * reply that ends without the wanted call is a violation that the caller never sees as a finished reply.
 */
import type { ToolChoice } from "../domain/Conversation.ts"
import { type ReplyEvent, TextDelta } from "../domain/ReplyEvent.ts"
import { TextPieces } from "../domain/stream/text.ts"
import type { HoldingMachine } from "../domain/stream/transducer.ts"

/** A machine over reply events that knows how the reply kept to the choice. */
export interface PolicyMachine extends HoldingMachine<ReplyEvent, ReplyEvent> {
  /** True once the reply has ended without the wanted call; its end was then held back. */
  readonly violated: () => boolean
}

/** True when the choice asks for a call. */
export const demandsCall = (choice: ToolChoice): boolean => choice._tag === "Required" || choice._tag === "Function"

/**
 * Starts the machine. With a forced function calls of other functions are not shown, and those that are count from 0.
 * `dropReasoning` is for a second try, whose reasoning would repeat what has been shown. A reply that was withdrawn ends
 * as what it is, whatever was asked for.
 */
export const toolPolicy = (choice: ToolChoice, dropReasoning: boolean): PolicyMachine => {
  const forced = choice._tag === "Function" ? choice.name : undefined
  let held: Array<ReplyEvent> = []
  /** Text that is held too, after those events: one piece, however many it came in. */
  const heldText = new TextPieces()
  let shown = 0
  let hiding = false
  let violated = false
  const holdText = () => {
    if (heldText.length > 0) held.push(TextDelta(heldText.toString()))
    heldText.clear()
  }
  const release = (out: Array<ReplyEvent>) => {
    holdText()
    for (const event of held) out.push(event)
    held = []
  }
  return {
    violated: () => violated,
    get held() {
      return heldText.length
    },
    push(event, out) {
      if (violated) return
      switch (event._tag) {
        case "ReasoningDelta":
          if (!dropReasoning) out.push(event)
          return
        case "TextDelta":
          if (shown > 0) out.push(event)
          else heldText.push(event.text)
          return
        case "UsageReported":
          if (shown > 0) out.push(event)
          else {
            holdText()
            held.push(event)
          }
          return
        case "CallStarted":
          hiding = forced !== undefined && event.name !== forced
          if (hiding) return
          release(out)
          out.push({ ...event, index: shown++ })
          return
        case "CallArguments":
        case "CallFinished":
        case "CallCutOff":
          if (!hiding) out.push({ ...event, index: shown - 1 })
          return
        case "Finish":
          if (shown === 0 && event.reason !== "content_filter") {
            violated = true
            held = []
            heldText.clear()
            return
          }
          release(out)
          out.push(event)
      }
    },
    end() {}
  }
}
