/**
 * Who changed what, newest first.
 */
import { useMemo } from "preact/hooks"
import { csvLine } from "../../domain/printed.ts"
import { Export } from "../parts/Export.tsx"
import { Heading } from "../parts/Heading.tsx"
import { Loaded } from "../parts/Loaded.tsx"
import { Row, Table } from "../parts/Table.tsx"
import { When } from "../parts/Time.tsx"
import { read } from "../state/actions.ts"
import type { Reply } from "../state/client.ts"
import { readOf } from "../state/reads.ts"
import { choose, useQuery } from "../state/route.ts"
import { useTexts } from "../state/texts.ts"

type Change = Reply<"admin-changes", "list">["changes"][number]

const pageSize = 50

/** Changes of a page that is read to be saved. */
const savedPage = 200

/** The changes from a place on as lines of CSV, page by page. */
async function* linesOfChanges(from: string, signal: AbortSignal) {
  for (let before: string | null = from; before !== null;) {
    const query: { readonly limit: number; readonly before?: string } = {
      limit: savedPage,
      ...before === "" ? {} : { before }
    }
    const page: Reply<"admin-changes", "list"> = await read((client) => client["admin-changes"].list({ query }), signal)
    const lines = page.changes.map(({ action, address, at, fields, more_fields, node, who }) =>
      csvLine([
        at,
        who.kind,
        who.name ?? "",
        address ?? "",
        node,
        action,
        [
          ...fields.map(({ after, before: was, path }) => `${path}: ${was ?? "–"} → ${after ?? "–"}`),
          ...more_fields === 0 ? [] : [`+${more_fields}`]
        ].join("; ")
      ])
    )
    yield { lines, total: undefined }
    before = page.next
  }
}

const Fields = ({ change: { fields, more_fields } }: { readonly change: Change }) => {
  const t = useTexts().changes
  const shown = (text: string | null) => text === null ? <span class="hint">{t.unset}</span> : <code>{text}</code>
  return (
    <ul class="differences">
      {fields.map(({ after, before, path }) => (
        <li key={path}>
          <code>{path}</code>
          <span>
            {shown(before)} <span aria-hidden="true">→</span> {shown(after)}
          </span>
        </li>
      ))}
      {more_fields > 0 && <li class="hint">{t.more(more_fields)}</li>}
    </ul>
  )
}

export const Changes = () => {
  const { changes: t, common } = useTexts()
  const { before = "" } = useQuery()
  const list = useMemo(
    () =>
      readOf("admin-changes", "list", {
        query: { limit: pageSize, ...(before === "" ? {} : { before }) },
        // Every change of the configuration is a change of this list.
        reactivityKeys: ["config", "accounts", "keys", "settings", "upstreams", "routes"]
      }),
    [before]
  )
  const turn = (to: string) => {
    choose({ before: to })
    scrollTo(0, 0)
  }
  return (
    <>
      <Heading name={common.pages.changes}>
        <Export
          list="changes"
          ending="csv"
          filter={before === "" ? {} : { before }}
          head={csvLine(["at", "who", "name", "address", "node", "action", "fields"])}
          read={(signal) => linesOfChanges(before, signal)}
        />
      </Heading>
      <p class="lead">{t.lead}</p>
      <Loaded atom={list}>
        {({ changes, next, store }) => (
          <>
            {!store.persistent && <p class="notice warn">{t.notKept}</p>}
            <div class="changes">
              <Table
                name={common.pages.changes}
                columns={[
                  { name: t.when, rank: 1, width: "10rem", class: "nowrap" },
                  { name: t.who, rank: 1, width: "14rem", class: "text" },
                  { name: t.what, rank: 2, class: "text" }
                ]}
                rows={changes.length}
                empty={t.empty}
              >
                {changes.map((change) => (
                  <Row
                    key={change.id}
                    class="top"
                    cells={[
                      <>
                        <When at={Date.parse(change.at)} />
                        <p class="hint">{change.node}</p>
                      </>,
                      <>
                        {t.kinds[change.who.kind]} {change.who.name !== null && <code>{change.who.name}</code>}
                        {change.address !== null && <p class="hint">{t.from(change.address)}</p>}
                      </>,
                      <>
                        {change.action}
                        {change.fields.length + change.more_fields > 0 && <Fields change={change} />}
                      </>
                    ]}
                  />
                ))}
              </Table>
            </div>
            <div class="pager">
              <button type="button" disabled={before === ""} onClick={() => turn("")}>{t.newest}</button>
              <button type="button" disabled={next === null} onClick={() => turn(next ?? "")}>{t.older}</button>
            </div>
          </>
        )}
      </Loaded>
    </>
  )
}
