/** Ways in which an upstream fails before the first event of a reply, and where a request goes after each. */
import { type Answer, json, said, type SeenRequest } from "./support.ts"

/** `account`: the other accounts of the target come first. `target`: the next target. `end`: nobody. */
export type Goes = "account" | "target" | "end"

export interface Failing {
  readonly name: string
  readonly answer: (request: SeenRequest) => Answer
  readonly goes: Goes
  /** The status of the caller's answer where it goes to nobody. */
  readonly status?: number
  /** That of a caller who speaks the server's protocol, if it is another one. */
  readonly ownStatus?: number
}

const error =
  (status: number, code: string | null = null, message = "no", headers: Record<string, string> = {}) => () =>
    json(status, { error: { message, type: "error", code } }, headers)

export const failures: ReadonlyArray<Failing> = [
  { name: "429", answer: error(429), goes: "account" },
  { name: "a used up quota", answer: error(429, "insufficient_quota"), goes: "account" },
  { name: "402", answer: error(402), goes: "account" },
  { name: "401", answer: error(401), goes: "account" },
  { name: "403", answer: error(403), goes: "account" },
  { name: "a suspended account", answer: error(403, "account_deactivated"), goes: "account" },
  { name: "500", answer: error(500), goes: "target" },
  { name: "502", answer: error(502), goes: "target" },
  { name: "503 with Retry-After", answer: error(503, null, "no", { "retry-after": "7" }), goes: "target" },
  { name: "529", answer: error(529), goes: "target" },
  { name: "504", answer: error(504), goes: "target" },
  {
    name: "a page",
    answer: () => ({ headers: { "content-type": "text/html" }, pieces: ["<html><body>Bad gateway</body></html>"] }),
    goes: "target"
  },
  { name: "nothing at all", answer: () => ({ pieces: [] }), goes: "target" },
  {
    name: "an empty reply",
    answer: (request) => said("", request),
    goes: "target"
  },
  { name: "a reset before the head", answer: () => ({ headless: true, after: "reset" }), goes: "target" },
  { name: "a reset after the head", answer: () => ({ pieces: [], after: "reset" }), goes: "target" },
  { name: "broken events", answer: () => ({ pieces: ["data: {broken\n\n"] }), goes: "target" },
  { name: "a wrong address", answer: error(404, null, "Not Found"), goes: "target" },
  { name: "an unknown model", answer: error(404, "model_not_found"), goes: "target" },
  { name: "400", answer: error(400), goes: "end", status: 400 },
  { name: "422", answer: error(422), goes: "end", status: 400, ownStatus: 422 },
  { name: "413", answer: error(413), goes: "end", status: 413 },
  { name: "a prompt that is too long", answer: error(400, "context_length_exceeded"), goes: "end", status: 400 },
  { name: "a filtered prompt", answer: error(400, "content_filter"), goes: "end", status: 400 }
]
