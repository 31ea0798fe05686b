/**
 * Enforces the caller's `tool_choice`: with `required` or a forced function, text waits until a call starts, and a reply without
 * the demanded call is a violation, which is never sent as a finished reply.
 */
import { type Conversation, type ToolChoice, toolsEnabled } from "../domain/Conversation.ts"
import { type GatewayError, invalidRequest, shortenName } from "../domain/GatewayError.ts"
import { type ReplyEvent, TextDelta } from "../domain/ReplyEvent.ts"
import { TextPieces } from "../domain/stream/text.ts"
import type { HoldingMachine } from "../domain/stream/transducer.ts"
import { type FamilyName, isWholeFor } from "../domain/VendorFields.ts"

/** A machine over reply events that detects violations of the choice. */
export interface PolicyMachine extends HoldingMachine<ReplyEvent, ReplyEvent> {
  /** True if the reply ended without the demanded call; its end is withheld then. */
  readonly violated: () => boolean
}

/** True if the choice demands a call. */
const demandsCall = (choice: ToolChoice): boolean => choice._tag === "Required" || choice._tag === "Function"

/** The error of a choice that the declared tools cannot meet. */
export const toolChoiceFault = ({ toolChoice: choice, tools }: Conversation): GatewayError | undefined => {
  if (choice._tag === "Required" && tools.length === 0) {
    return invalidRequest("tool_choice requires a call but no tools are declared", "tool_choice")
  }
  if (choice._tag === "Function" && !tools.some((tool) => tool.name === choice.name)) {
    return invalidRequest(
      `tool_choice names "${shortenName(choice.name)}", which is not declared in tools`,
      "tool_choice"
    )
  }
  return undefined
}

/** True if an upstream may have tools of its own, among which a choice may be. */
export const hasOwnTools = ({ vendorFields, vendorTools }: Conversation): boolean =>
  vendorTools !== undefined || vendorFields?.wholeElement === true

/** True if the upstream of this family gets tools whose calls the gateway does not read: then it judges the choice among all tools. */
export const judgesChoice = (conversation: Conversation, family: FamilyName | undefined): boolean =>
  (isWholeFor(conversation, family) && conversation.vendorFields?.readsCalls !== true) ||
  conversation.vendorTools?.some(({ vendorFields }) => vendorFields.vendor === family) === true

/** True if the reply of an upstream of this family must have a call. */
export const checksChoice = (conversation: Conversation, family: FamilyName | undefined): boolean =>
  toolsEnabled(conversation) && demandsCall(conversation.toolChoice) && !judgesChoice(conversation, family)

/**
 * True if a reply without the demanded call is asked for once more. A request that goes as its caller wrote it gets no reminder, and the choices
 * of one reply are not asked for apart.
 */
export const asksTwice = (conversation: Conversation, family: FamilyName | undefined): boolean =>
  checksChoice(conversation, family) && !isWholeFor(conversation, family) && conversation.choices === 1

/**
 * Starts the machine. A forced function hides the calls of other functions; the remaining calls are numbered from 0.
 * `dropReasoning` drops the reasoning of a second turn, which would repeat the first one's. A withdrawn reply is no violation.
 */
export const toolPolicy = (choice: ToolChoice, dropReasoning: boolean): PolicyMachine => {
  const forced = choice._tag === "Function" ? choice.name : undefined
  let held: Array<ReplyEvent> = []
  /** Characters of the fields in the held events. */
  let heldFields = 0
  /** Held text after the held events, joined to one piece. */
  const heldText = new TextPieces()
  let shown = 0
  let hiding = false
  let violated = false
  const holdText = () => {
    if (heldText.length > 0) held.push(TextDelta(heldText.toString()))
    heldText.clear()
  }
  const hold = (event: ReplyEvent, characters: number) => {
    holdText()
    held.push(event)
    heldFields += characters
  }
  const release = (out: Array<ReplyEvent>) => {
    holdText()
    for (const event of held) out.push(event)
    held = []
    heldFields = 0
  }
  return {
    violated: () => violated,
    get held() {
      return heldText.length + heldFields
    },
    push(event, out) {
      if (violated) return
      switch (event._tag) {
        case "ReasoningDelta":
          if (!dropReasoning) out.push(event)
          return
        case "TextDelta":
          if (shown > 0) out.push(event)
          else if (event.original === undefined) heldText.push(event.text)
          else hold(event, event.text.length + JSON.stringify(event.original).length)
          return
        case "ReplyExtra":
        case "UsageReported":
          if (shown > 0) out.push(event)
          else hold(event, event._tag === "ReplyExtra" ? JSON.stringify(event.value).length : 0)
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
            heldFields = 0
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
