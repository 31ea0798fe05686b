/** @jsxImportSource preact */
/**
 * Components of pages, each by itself in Chromium: the timeline of a request, the fields of the settings form.
 */
import { useState } from "preact/hooks"
import { assert, describe, expect, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import { TimeLine } from "../../../src/web/pages/requests/TimeLine.tsx"
import type { Field } from "../../../src/web/pages/settings/fields.ts"
import { FieldView } from "../../../src/web/pages/settings/FieldView.tsx"
import type { RequestRecord } from "../../../src/web/state/requests.ts"
import { draw } from "./support.tsx"

/** A record with `frames` frames on each side, the client's half a millisecond after the upstream's. */
const recordOf = (frames: number): RequestRecord => ({
  id: "1",
  request_id: "req_1",
  started_at: 0,
  style: "chat",
  model: "upstream-chat",
  native_model: "upstream-chat",
  stream: true,
  key: "direct",
  key_name: null,
  account: "ada@example.com",
  state: "done",
  outcome: "ok",
  status: 200,
  error: null,
  finish: "stop",
  attempts: 1,
  failovers: 0,
  calls: 0,
  queued_ms: 0,
  first_event_ms: 1,
  duration_ms: frames,
  usage: null,
  bodies_kept: true,
  request: { method: "POST", path: "/v1/chat/completions", headers: {}, body: "{}", truncated: false },
  conversation: null,
  upstream: [{
    capture_id: "",
    label: "completion",
    attempt: 1,
    url: "",
    account: "ada@example.com",
    status: 200,
    request_body: "{}",
    frames: Array.from({ length: frames }, (_, i) => ({ at_ms: i, data: `data: upstream ${i}\n\n` })),
    truncated: false
  }],
  reply: {
    status: 200,
    headers: {},
    frames: Array.from({ length: frames }, (_, i) => ({ at_ms: i + 0.5, data: `data: client ${i}\n\n` })),
    truncated: false,
    text: "",
    reasoning: null,
    calls: [],
    finish: null
  },
  upstream_reply: null,
  tries: [],
  error_message: null,
  fault: null,
  tool_calls: [],
  server_timing: null,
  ignored: [],
  ignored_more: 0
})

describe("TimeLine of a request in the console", () => {
  const frames = page.getByRole("table", { name: "Frames" })
  const rows = () => frames.element().querySelectorAll("tbody tr")

  it("keeps the size of the document independent of the number of frames", async () => {
    const place = draw(<TimeLine record={recordOf(5_000)} />)
    await expect.element(page.getByText("1–100 of 10000")).toBeVisible()
    const elements = place.querySelectorAll("*").length
    assert.isAtMost(elements, 1_200)
    assert.strictEqual(rows().length, 100)
    // Both sides in the order of time.
    assert.deepStrictEqual(
      [...rows()].slice(0, 3).map((row) => row.textContent),
      ["0.0 msupstreamdata: upstream 0", "0.5 msclientdata: client 0", "1.0 msupstreamdata: upstream 1"]
    )

    draw(<TimeLine record={recordOf(10_000)} />)
    await expect.element(page.getByText("1–100 of 20000")).toBeVisible()
    assert.isAtMost(Math.abs(place.querySelectorAll("*").length - elements), 4)
  })

  it("leads to the last frame, and filters by side", async () => {
    draw(<TimeLine record={recordOf(125)} />)
    const next = page.getByRole("button", { name: "Next page" })
    await next.click()
    await next.click()
    await expect.element(next).toBeDisabled()
    await expect.element(frames.getByText("data: client 124")).toBeInTheDocument()
    assert.strictEqual(rows().length, 50)
    await userEvent.selectOptions(page.getByRole("combobox", { name: "Side" }), "client")
    await expect.element(page.getByText("1–100 of 125")).toBeVisible()
    await expect.element(frames.getByText("data: client 99")).toBeInTheDocument()
    assert.strictEqual(frames.getByRole("cell", { name: "upstream", exact: true }).elements().length, 0)
  })

  it("has one row with a notice if the record has no frames", async () => {
    draw(<TimeLine record={{ ...recordOf(0), upstream: [], reply: null }} />)
    assert.strictEqual(rows().length, 1)
    assert.strictEqual(document.querySelectorAll(".tracks, .pager").length, 0)
  })
})

const field: Field = {
  path: "runtime.account_max_inflight",
  type: "integer",
  minimum: 1,
  maximum: 256,
  choices: null,
  default: 2,
  configured: null,
  effective: 2,
  writable: true,
  description: "Requests at once of one account."
}

describe("FieldView of a setting in the console", () => {
  /** Refuses everything but numbers, like the gateway on saving. */
  const Form = ({ of }: { readonly of: Field }) => {
    const [text, setText] = useState("")
    const fault = text === "" || /^\d+$/.test(text) ? undefined : "must be an integer"
    return <FieldView field={of} text={text} changed={text !== ""} fault={fault} onText={setText} />
  }

  it("has its description, range and path, and the refusal, as its description", async () => {
    draw(<Form of={field} />)
    const input = page.getByRole("textbox", { name: /^Requests per account/ })
    await expect.element(input).toHaveAttribute("aria-invalid", "false")
    await expect.element(input).toHaveAccessibleDescription(
      /^Requests at once of one account\..*1 to 256 · runtime\.account_max_inflight$/
    )
    await input.fill("many")
    await expect.element(input).toHaveAttribute("aria-invalid", "true")
    await expect.element(input).toHaveAccessibleDescription(/^must be an integer Requests at once/)
    // In words, not by colour.
    await expect.element(page.getByText("(changed)")).toBeVisible()
    await input.fill("3")
    await expect.element(input).toHaveAttribute("aria-invalid", "false")
    await expect.element(input).toHaveAccessibleDescription(/^Requests at once/)
  })

  it("shows a boolean as a choice, and a map as lines", async () => {
    draw(<Form of={{ ...field, path: "captures.enabled", type: "boolean", default: true, effective: true }} />)
    const choice = page.getByRole("combobox", { name: "Capture upstream traffic" })
    assert.deepStrictEqual(
      [...choice.element().querySelectorAll("option")].map((option) => option.textContent),
      ["yes (default)", "yes", "no"]
    )
    draw(<Form of={{ ...field, path: "model_aliases", type: "map", default: null, effective: { a: "b", c: "d" } }} />)
    const lines = page.getByRole("textbox", { name: "Aliases" })
    assert.strictEqual(lines.element().tagName, "TEXTAREA")
    await expect.element(lines).toHaveAccessibleDescription(/In effect: a = b, c = d/)
  })
})
