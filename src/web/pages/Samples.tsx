/**
 * Raw samples: capture a reply, find a captured one, save it, and replay it in any style.
 */
import { useMemo, useState } from "preact/hooks"
import { playedStyles } from "../../api.ts"
import { Badge } from "../parts/Badge.tsx"
import { DeleteDialog } from "../parts/Dialog.tsx"
import { Empty } from "../parts/Empty.tsx"
import { Form, type ReadField, Search, Select, TextField, useWork } from "../parts/Form.tsx"
import { bytes } from "../parts/format.ts"
import { Heading, Section } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { RowMenu } from "../parts/Menu.tsx"
import { Row, RowButton, Table } from "../parts/Table.tsx"
import { When } from "../parts/Time.tsx"
import { act, report } from "../state/actions.ts"
import { rest } from "../state/client.ts"
import { failureText } from "../state/failure.ts"
import { readOf, reload } from "../state/reads.ts"
import { choose, useQuery } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"

const shownReplies = 20
const shownSamples = 200
const shownCharacters = 200_000

const savedAtom = readOf("admin-samples", "list", { reactivityKeys: ["samples"] })

const Capture = () => {
  const t = useTexts().samples
  const [empty, setEmpty] = useState(true)
  const capture = async (read: ReadField) => {
    try {
      const body = { message: read("message"), stream: true }
      const response = await rest("POST", "/admin/dev/raw-samples/capture", body)
      const text = await response.text()
      if (!response.ok) return report(text.slice(0, 500), true)
      await reload("samples", "captures")
      return report(t.captured(response.headers.get("x-gateway-sample-id") ?? ""))
    } catch (reason) {
      return report(failureText(reason), true)
    }
  }
  return (
    <Form class="row" onSubmit={capture}>
      {(busy) => (
        <>
          <TextField
            grow
            label={t.message}
            name="message"
            onInput={(event) => setEmpty(event.currentTarget.value.trim() === "")}
          />
          <button type="submit" class="primary" disabled={busy || empty}>{t.capture}</button>
        </>
      )}
    </Form>
  )
}

/** The beginning of a text, on two lines. */
const Preview = ({ text }: { readonly text: string }) =>
  text === "" ? <>–</> : <span class="two-lines" title={text}>{text}</span>

/** Whether a reply was one: the HTTP status of its last round. */
const Status = ({ status }: { readonly status: number }) =>
  status === 0
    ? <>–</>
    : <Badge sign={status < 400 ? "✓" : "✕"} tone={status < 400 ? "good" : "bad"} text={String(status)} />

const Captured = () => {
  const t = useTexts().samples
  const { q = "" } = useQuery()
  const [saving, save] = useWork((chain_key: string) =>
    act((client) => client["admin-samples"].save({ payload: { chain_key } }), {
      done: ({ sample_id }) => t.saved(sample_id),
      subjects: ["samples"]
    })
  )
  const found = useMemo(() => {
    const query = { limit: shownReplies, ...(q === "" ? {} : { q }) }
    return readOf("admin-samples", "query", { query, reactivityKeys: ["captures"] })
  }, [q])
  return (
    <Section
      name={t.capturedReplies}
      actions={<button type="button" class="quiet" onClick={() => void reload("captures")}>{t.reload}</button>}
    >
      <Loaded atom={found}>
        {({ items }, waiting) => (
          <>
            {(q !== "" || items.length > 0) && (
              <Search
                label={t.search}
                value={q}
                onSearch={(text) => choose({ q: text })}
              />
            )}
            <Table
              name={t.capturedReplies}
              busy={waiting}
              columns={[
                { name: t.asked, rank: 1, class: "text" },
                { name: t.answered, rank: 2, class: "text" },
                { name: t.time, rank: 2, width: "10.5rem", class: "nowrap" },
                { name: t.status, rank: 2, width: "6rem" },
                { name: t.model, rank: 3, width: "12rem" },
                { name: t.rounds, rank: 3, width: "5rem", number: true },
                { name: t.actions, hidden: true, width: "6rem", class: "tools" }
              ]}
              rows={items.length}
              empty={q === "" ? <Empty>{t.noneCaptured}</Empty> : t.noneFound}
            >
              {items.map(({ chain_key, created_at, model, request_preview, response_preview, round_count, status }) => (
                <Row
                  key={chain_key}
                  cells={[
                    <Preview key="asked" text={request_preview} />,
                    <Preview key="answered" text={response_preview} />,
                    <When key="time" at={created_at} />,
                    <Status key="status" status={status} />,
                    model ?? "–",
                    round_count,
                    <RowButton
                      key="save"
                      text={t.save}
                      of={chain_key}
                      disabled={saving}
                      onClick={() => save(chain_key)}
                    />
                  ]}
                />
              ))}
            </Table>
          </>
        )}
      </Loaded>
    </Section>
  )
}

interface SavedSample {
  readonly id: string
  readonly round_count: number
  readonly size: number
}

interface Played {
  readonly id: string
  readonly text: string
  readonly failed: boolean
}

const Saved = () => {
  const { requests, samples: t } = useTexts()
  const query = useQuery()
  const style = playedStyles.find((each) => each === query["style"]) ?? "chat"
  const [deleting, setDeleting] = useState<SavedSample>()
  const [played, setPlayed] = useState<Played>()
  const replay = async (id: string) => {
    try {
      const response = await rest("POST", "/admin/dev/raw-samples/replay", { sample_id: id, style, stream: true })
      const text = await response.text()
      setPlayed({ id, text: text.slice(0, shownCharacters), failed: !response.ok })
    } catch (reason) {
      report(failureText(reason), true)
    }
  }
  return (
    <Section
      name={t.savedSamples}
      actions={
        <Select
          class="inline"
          label={t.style}
          value={style}
          options={playedStyles.map((each) => [each, requests.styles(each)] as const)}
          onValue={(next) => choose({ style: next === "chat" ? "" : next })}
        />
      }
    >
      <Loaded atom={savedAtom}>
        {({ items }, waiting) => (
          <Table
            name={t.savedSamples}
            busy={waiting}
            columns={[
              { name: t.sample, rank: 1, class: "text" },
              { name: t.created, rank: 2, width: "10.5rem", class: "nowrap" },
              { name: t.status, rank: 2, width: "6rem" },
              { name: t.model, rank: 2, width: "12rem" },
              { name: t.rounds, rank: 3, width: "5rem", number: true },
              { name: t.size, rank: 3, width: "6rem", number: true },
              { name: t.actions, hidden: true, width: "4rem", class: "tools" }
            ]}
            rows={items.length}
            empty={<Empty>{t.noneSaved}</Empty>}
          >
            {items.slice(0, shownSamples).map((
              { bytes: size, created_at, model, round_count, sample_id: id, status }
            ) => (
              <Row
                key={id}
                cells={[
                  id,
                  <When key="created" at={created_at} />,
                  <Status key="status" status={status} />,
                  model ?? "–",
                  round_count,
                  bytes(size),
                  <RowMenu
                    key="actions"
                    of={id}
                    items={[
                      { id: "replay", text: t.replay, onClick: () => void replay(id) },
                      {
                        id: "remove",
                        text: t.delete,
                        danger: true,
                        onClick: () => setDeleting({ id, round_count, size })
                      }
                    ]}
                  />
                ]}
              />
            ))}
          </Table>
        )}
      </Loaded>
      {played !== undefined && (
        <section aria-label={t.replay}>
          <h2>{t.replayTitle(played.id)}</h2>
          {played.failed && <p class="notice bad" role="alert">{t.replayFailed}</p>}
          <div class="card body" tabIndex={0} role="group" aria-label={t.replayTitle(played.id)}>
            <pre>{played.text}</pre>
          </div>
        </section>
      )}
      {deleting !== undefined && (
        <DeleteDialog
          name={deleting.id}
          onClose={() => setDeleting(undefined)}
          onDelete={() =>
            act((client) => client["admin-samples"].remove({ params: { sample_id: deleting.id } }), {
              done: () => t.deleted(deleting.id),
              subjects: ["samples"]
            })}
        >
          {t.deleteAsk(deleting.round_count, bytes(deleting.size))}
        </DeleteDialog>
      )}
    </Section>
  )
}

export const Samples = () => {
  const t = useTexts()
  return (
    <>
      <Heading name={t.common.pages.samples} />
      <p class="lead">{t.samples.lead}</p>
      <Capture />
      <Captured />
      <Saved />
    </>
  )
}
