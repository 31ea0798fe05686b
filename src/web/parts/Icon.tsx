/**
 * Icons, drawn with lines in the colour of the text beside them. They never stand without words for screen readers.
 */
import type { Page } from "../state/route.ts"

const paths = {
  overview: "M3 12h4l3-8 4 16 3-8h4",
  requests: "M4 6h16M4 12h16M4 18h10",
  usage: "M5 20V10m7 10V4m7 16v-7",
  sessions: "M7 4v16M7 8h7M7 16h7M14 5.5h5v5h-5zM14 13.5h5v5h-5z",
  playground: "M4 5h16v11H10l-5 4v-4H4z",
  keys: "M14.5 9.5a4.5 4.5 0 1 0-4 4.5L12 12.5h2l1.5-1.5M14 12l6.5 6.5V21H18",
  models: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM4 7.5l8 4.5 8-4.5M12 12v9",
  accounts:
    "M8.5 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2 20c0-3.5 2.9-6 6.5-6s6.5 2.5 6.5 6M16 4.3a3.5 3.5 0 0 1 0 6.4M18 14.3c2.4.7 4 2.9 4 5.7",
  upstreams: "M4 4h16v6H4zM4 14h16v6H4zM7.5 7h.01M7.5 17h.01",
  routes: "M6 4v16M6 8c0 4 12 2 12 8v4M15 17l3 3 3-3M3 7l3-3 3 3",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M14 4.5h4v5h-4zM6 14.5h4v5H6z",
  webhooks: "M18 8a6 6 0 1 0-12 0c0 7-3 8-3 8h18s-3-1-3-8M10 20a2.3 2.3 0 0 0 4 0",
  transfer: "M7 20V5M3 9l4-4 4 4M17 4v15M13 15l4 4 4-4",
  changes: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4h4M12 8v4.5l3 1.5",
  samples: "M5 3h10l4 4v14H5zM14 3v5h5M9 13h6M9 17h4",
  about: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 7.5h.01",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5 20 20",
  close: "M6 6l12 12M18 6 6 18",
  note: "M5 5h14v9l-5 5H5zM14 19v-5h5M8.5 9.5h7",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c0-3.8 3.3-6 7.5-6s7.5 2.2 7.5 6"
} as const satisfies Readonly<Record<Page, string>> & Readonly<Record<string, string>>

export type IconName = keyof typeof paths

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
    <path d={paths[name]} />
  </svg>
)

const [circle, quarter] = ["M12 5a7 7 0 1 0 0 14 7 7 0 0 0 0-14z", "M12 12V5a7 7 0 0 1 7 7z"]
const triangle = "M12 4.5 20.5 19h-17z"

/** The lines and the faces of each sign, by the character that it is written as. */
const signs: Readonly<Record<string, readonly [lines: string, faces: string]>> = {
  "●": [circle, circle],
  "○": [circle, ""],
  "◔": [circle, quarter],
  "▲": [triangle, triangle],
  "✕": ["M6 6l12 12M18 6 6 18", ""],
  "✓": ["M4.5 12.5l5 5L19.5 7", ""],
  "➜": ["M4 12h15M13 6l6 6-6 6", ""],
  "↩": ["M8.5 6 4 10.5 8.5 15M4 10.5h10.5a4.75 4.75 0 0 1 0 9.5H9", ""],
  "!": ["M12 4.5v9M12 18.5h.01", ""],
  "▾": ["M6.5 9.5l5.5 5.5 5.5-5.5", ""]
}

/** A sign in the colour of the text beside it, which says the same in words. Other characters stay as they are. */
export const Sign = ({ of }: { readonly of: string }) => {
  const drawn = signs[of]
  if (drawn === undefined) return <span aria-hidden="true">{of}</span>
  const [lines, faces] = drawn
  return (
    <svg class="drawn" viewBox="0 0 24 24" aria-hidden="true">
      {faces !== "" && <path class="face" d={faces} />}
      <path d={lines} />
    </svg>
  )
}

/** The product's mark. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <path d="M7 10h6l6 12h6M7 22h6l2-4M17 14l2-4h6" />
  </svg>
)
