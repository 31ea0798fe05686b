/**
 * The reply to a warm-up: a response without output, for which no server is asked. Later turns continue it.
 */
import { responseId } from "../../../contracts/responses/ids.ts"
import { inProgressText, type ResponseInfo, responseText } from "../../../contracts/responses/responseText.ts"

/** The response object. `completedAt` is in Unix seconds. */
export const emptyText = (info: ResponseInfo, completedAt: number): string =>
  responseText(info, {
    status: "completed",
    completedAt,
    error: null,
    incomplete: null,
    output: [],
    text: "",
    usage: undefined,
    serviceTier: undefined
  })

const frame = (type: string, sequence: number, fields: string): string =>
  `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence},${fields}}\n\n`

/** Its first and its last event. */
export const warmUpFrames = (info: ResponseInfo, response: string): string =>
  frame(
    "response.created",
    0,
    `"id":"${responseId(info.seed)}","status":"in_progress","response":${inProgressText(info)}`
  ) +
  frame("response.completed", 1, `"response":${response}`)
