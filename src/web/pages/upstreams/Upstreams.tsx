/**
 * Upstreams: what they do now, and changing, testing, adding and deleting them.
 */
import { useState } from "preact/hooks"
import { useFields } from "../../forms/Entry.tsx"
import { ChangeButton } from "../../parts/configuration.tsx"
import { Empty } from "../../parts/Empty.tsx"
import { Search } from "../../parts/Form.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { useLayout } from "../../parts/layout.ts"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowMenu } from "../../parts/Menu.tsx"
import { Row, Table } from "../../parts/Table.tsx"
import { defaultUpstream } from "../../state/names.ts"
import { choose, linkTo, useQuery } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { type UpstreamItem, upstreamsAtom, useCurrentUpstreams } from "../../state/upstreams.ts"
import { useWorkCells, useWorkColumns } from "../overview/UpstreamRows.tsx"
import { DeleteUpstream } from "./DeleteUpstream.tsx"
import { EditUpstream } from "./EditUpstream.tsx"
import { UpstreamPage } from "./UpstreamPage.tsx"
import { Accounts, useUpstreamActions } from "./UpstreamParts.tsx"

const UpstreamRow = ({ item, onDelete, onEdit }: {
  readonly item: UpstreamItem
  readonly onEdit: () => void
  readonly onDelete: () => void
}) => {
  const { upstreams: t } = useTexts()
  const isCards = useLayout() === "cards"
  const { base_url, driver, enabled, models, name, proxy } = item
  const way = [
    t.drivers(driver),
    t.modelCount(models.length),
    // A card has the state beside it.
    ...base_url === "" || isCards ? [] : [base_url],
    ...proxy === null ? [] : [t.through(proxy)]
  ].join(" · ")
  const { busy, isTesting, test, toggle } = useUpstreamActions(item)
  return (
    <Row
      cells={[
        <>
          <a href={linkTo("upstreams", name)}>{name}</a>
          <p class="hint rest" title={[way, ...models].join("\n")}>{way}</p>
        </>,
        ...useWorkCells(item),
        <Accounts key="accounts" item={item} />,
        <RowMenu
          key="menu"
          of={name}
          items={[
            { id: "toggle", text: enabled ? t.disable : t.enable, disabled: busy, onClick: toggle },
            { id: "test", text: t.test, disabled: isTesting, onClick: test },
            { id: "edit", text: t.edit, onClick: onEdit },
            {
              id: "delete",
              text: t.delete,
              danger: true,
              apart: true,
              disabled: name === defaultUpstream,
              onClick: onDelete
            }
          ]}
        />
      ]}
    />
  )
}

type Open =
  | { readonly name: "add" }
  | { readonly name: "edit" | "delete"; readonly item: UpstreamItem }

/** The list of upstreams, or the page of the one named `of`. */
export const Upstreams = ({ of }: { readonly of: string | undefined }) =>
  of === undefined ? <UpstreamList /> : <UpstreamPage key={of} name={of} />

const UpstreamList = () => {
  const { common, upstreams: t } = useTexts()
  const { q = "" } = useQuery()
  const [open, setOpen] = useState<Open>()
  useCurrentUpstreams()
  // So that a dialog opens immediately.
  useFields("upstreams")
  const close = () => setOpen(undefined)
  const columns = useWorkColumns()
  return (
    <>
      <Heading name={common.pages.upstreams}>
        <ChangeButton class="primary" onClick={() => setOpen({ name: "add" })}>{t.add}</ChangeButton>
      </Heading>
      <Loaded atom={upstreamsAtom}>
        {({ upstreams }) => {
          const text = q.toLowerCase()
          const found = upstreams.filter(({ base_url, models, name }) =>
            [name, base_url, ...models].some((each) => each.toLowerCase().includes(text))
          )
          return (
            <>
              {(upstreams.length > 6 || q !== "") && (
                <div class="row">
                  <Search label={t.search} value={q} onSearch={(next) => choose({ q: next })} />
                </div>
              )}
              <Table
                name={common.pages.upstreams}
                columns={[
                  { name: t.upstream, rank: 1, class: "text" },
                  ...columns,
                  { name: t.accounts, rank: 4, width: "8.4rem", number: true },
                  { name: t.actions, hidden: true, width: "3.2rem", class: "tools" }
                ]}
                rows={found.length}
                empty={upstreams.length === 0
                  ? <Empty action={t.add} onAction={() => setOpen({ name: "add" })}>{t.empty}</Empty>
                  : t.noneFound}
              >
                {found.map((item) => (
                  <UpstreamRow
                    key={item.name}
                    item={item}
                    onEdit={() => setOpen({ name: "edit", item })}
                    onDelete={() => setOpen({ name: "delete", item })}
                  />
                ))}
              </Table>
              <p class="hint">{t.figuresHint}</p>
            </>
          )
        }}
      </Loaded>
      {open?.name === "add" && <EditUpstream onClose={close} />}
      {open?.name === "edit" && <EditUpstream item={open.item} onClose={close} />}
      {open?.name === "delete" && <DeleteUpstream item={open.item} onClose={close} />}
    </>
  )
}
