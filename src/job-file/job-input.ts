/** Written by npx node scripts/build/write-types.ts from the schema of jobs. */

/** A field of a record: see docs/extraction.md. */
export interface FieldInput {
  /** CSS selector; in nested fields, inside the match of the parent. */
  css?: string | undefined;
  /** Attribute to extract instead of the text. */
  attr?: string | undefined;
  /** Path into JSON-LD that starts with a type: `Product.offers.price`. */
  jsonLd?: string | undefined;
  /** Name or property of a meta tag: `og:title`. */
  meta?: string | undefined;
  /** Extracts the match, or its first group, from the value; without a selector, from the page. Runs in linear time. */
  regex?: string | undefined;
  /** Extract all matches as a list instead of the first. */
  all?: boolean | undefined;
  /** Type to convert the text to. The value is null if the text does not fit. */
  type?: 'text' | 'number' | 'money' | 'date' | 'url' | 'html' | 'json' | 'markdown' | undefined;
  /** For money: the currency if the text has none, or an ambiguous sign such as `$`. */
  currency?: string | undefined;
  /** For numbers and money: the decimal mark. Default: detected from the text. */
  decimal?: '.' | ',' | undefined;
  /** For dates: true reads 01/02/2024 as 1 February, false as 2 January. Without it such dates are null. */
  dayFirst?: boolean | undefined;
  /** Nested fields, extracted inside each match of `css`. */
  fields?: Record<string, string | FieldInput> | undefined;
  /** If the value is missing, the page is a `validation` failure. */
  required?: boolean | undefined;
}

interface SourceRoute {
  /** Route of the tasks. Default: the route that matches the URL. */
  route?: string | undefined;
}

interface SourcePriority {
  /** Higher runs first. */
  priority?: number | undefined;
}

/** A route, but for its functions, and what TypeScript knows more of: select and schema. */
export interface RouteFields {
  /** Name of the route, for exports and follow rules. */
  name: string;
  /** URLs of this route. Default: every URL that no earlier route matches. */
  match?: string | readonly string[] | undefined;
  /** What the URLs are: pages, media files to store, or sitemaps. */
  kind?: 'page' | 'media' | 'sitemap' | undefined;
  /** Adds the fields `title` and `markdown`: the main content of the page. */
  markdown?: boolean | undefined;
  /** Selectors that must match. If one does not, the page is a `validation` failure and is retried. */
  require?: readonly string[] | undefined;
  /** Fields that identify a record; records with the same key are merged. Default: the URL. */
  key?: string | readonly string[] | undefined;
  /** Media to store: selectors, or fields of the record. */
  media?:
    | readonly (
        | string
        | {
            /** Elements with media. */
            css?: string | undefined;
            /** Attribute with the URL. Default: src, srcset, href, poster or data-src. */
            attr?: string | undefined;
            /** Field of the record with the URL or URLs. */
            field?: string | undefined;
            /** Route of kind media. Default: a built-in one. */
            route?: string | undefined;
            /** Higher runs first. */
            priority?: number | undefined;
          }
      )[]
    | undefined;
  /** Pagination of lists. */
  paginate?:
    | {
        /** URL template with {page} (page number) or {offset} (item offset): absolute, relative to the page (`?page={page}`), or a query parameter to set (`&page={page}`). Required with `count`. */
        url?: string | undefined;
        /** Where a page contains the number of pages. */
        count?:
          | {
              /** Element whose text contains the number. */
              css?: string | undefined;
              /** Attribute to read instead of the text. */
              attr?: string | undefined;
              /** Applied to the text of the element, or of the whole page. */
              regex?: string | undefined;
              /** Path into a JSON page: `meta.pages`. */
              json?: string | undefined;
              /** Response header with the number. */
              header?: string | undefined;
              /** CSS selector of the link to the last page. `url` must match its URL and yields the number. */
              lastLink?: string | undefined;
              /** Items per page, if the number counts items. */
              perPage?: number | undefined;
            }
          | undefined;
        /** CSS selector of the link to the next page, used if there is no count. */
        next?: string | undefined;
        /** Number of the first page. */
        first?: number | undefined;
        /** Maximum number of pages. */
        max?: number | undefined;
        /** Higher runs first. */
        priority?: number | undefined;
      }
    | undefined;
  /** Whether to follow links on these pages. */
  follow?: boolean | undefined;
  /** How to fetch the pages: plain HTTP, HTTP with the TLS fingerprint and headers of a browser, a real browser, or a remote scraping API. `auto` uses HTTP, and a browser for pages that need JavaScript. Default: `browser` if the route has `browser`, otherwise `http`. */
  fetcher?: 'http' | 'impersonate' | 'browser' | 'api' | 'auto' | undefined;
  /** What the browser does with the pages, and what to store. See docs/rendering.md. */
  browser?:
    | {
        /** When the page is ready: DOM parsed, page loaded, or no network traffic for half a second (at most ten seconds later). Default: `idle`. */
        waitUntil?: 'dom' | 'load' | 'idle' | undefined;
        /** Actions on the page, in this order. */
        actions?:
          | readonly (
              | {
                  /** Wait until an element that matches is visible. */
                  waitFor: string;
                }
              | {
                  /** Wait for this time. */
                  waitMs: number;
                }
              | {
                  /** `end` scrolls until the page stops growing; a number scrolls that many screens. */
                  scroll: 'end' | number;
                }
              | {
                  /** Element to click. */
                  click: string;
                  /** Continue if the element does not exist. */
                  optional?: boolean | undefined;
                }
              | {
                  /** Input field to type into. */
                  type: string;
                  /** Text to type. */
                  text: string;
                }
              | {
                  /** Key to press, such as `Enter`. */
                  press: string;
                }
            )[]
          | undefined;
        /** How to perform actions: `plain` at once; `human` moves the pointer in curves, scrolls in small steps with pauses and types with a rhythm. Default: `plain`. */
        behaviour?: 'plain' | 'human' | undefined;
        /** Size of the window. Default: that of the device, or 1280 × 800. */
        viewport?:
          | {
              /** In pixels. */
              width: number;
              /** In pixels. */
              height: number;
            }
          | undefined;
        /** Device name from Playwright, such as `iPhone 15`. */
        device?: string | undefined;
        /** Language of the browser, such as `de-CH`. */
        locale?: string | undefined;
        /** Time zone of the browser, such as `Europe/Zurich`. */
        timezone?: string | undefined;
        /** Resources to block; `ads` are known ad networks and trackers. */
        block?: readonly ('images' | 'media' | 'fonts' | 'styles' | 'ads')[] | undefined;
        /** Screenshot to store with the page; `true` is the whole page as PNG. */
        screenshot?:
          | boolean
          | {
              /** The whole page, the visible screen, or one element. */
              of?:
                | 'page'
                | 'screen'
                | {
                    /** Selector; the first match is used. */
                    element: string;
                  }
                | undefined;
              /** Image format. */
              format?: 'png' | 'jpeg' | 'webp' | undefined;
              /** Quality of JPEG and WebP. */
              quality?: number | undefined;
              /** PNG compression: `small` has 70 % of the bytes of `fast`, and takes the worker a fifth of a second more for a long page. */
              packing?: 'fast' | 'small' | undefined;
            }
          | undefined;
        /** Also store the page as PDF. */
        pdf?: boolean | undefined;
        /** Data loaded by the scripts of the page. Each entry becomes a field of the record. */
        capture?:
          | readonly {
              /** Name of the field. */
              name: string;
              /** URL pattern of the responses, or of the WebSockets: `wss://*\/ticker`. */
              url: string;
              /** JSON responses to scripts, or frames of WebSockets. */
              of?: 'json' | 'frames' | undefined;
              /** Maximum number of items per page. */
              max?: number | undefined;
            }[]
          | undefined;
      }
    | undefined;
  /** Fetchers and proxies to try if a site refuses requests. Seine learns the cheapest that works for each host. */
  escalate?: readonly ('identity' | 'impersonate' | 'proxy' | 'browser' | 'api')[] | undefined;
  /** Proxy pool for these pages instead of the default. If `escalate` contains `proxy`, it is used only from that step on. */
  proxy?: string | undefined;
}

/** A job, but for its routes. */
export interface JobFields {
  /** For editors: location of the JSON Schema. */
  $schema?: string | undefined;
  /** Name of the job. Default: the name of the file or host. */
  name?: string | undefined;
  /** URLs, files of URLs, sitemaps, tables and queries to start from. Needed unless `keepOpen` is set. */
  sources?:
    | string
    | ({
        /** Path, `s3://bucket/prefix/*.parquet`, or http(s) URL; `*` matches any name. */
        file: string;
        /** Format of the file. Default: from the file name. */
        format?: 'txt' | 'csv' | 'jsonl' | 'parquet' | 'sitemap' | undefined;
        /** Column or property with the URL. Default: `url`, `page_url`, `image_url` or `link`. */
        urlColumn?: string | undefined;
        /** Several URL columns and the route of each. Each row gives one task per column. */
        columns?: Record<string, string> | undefined;
        /** Column with the route of each row. A row without one gets `route`, or the route that matches. */
        routeColumn?: string | undefined;
        /** Column with the priority of each row, from -1000 to 1000. A row without one gets `priority`. */
        priorityColumn?: string | undefined;
        /** Column with the proxy pool of each row, by its name in `proxies.pools`. A row without one gets that of its route. */
        poolColumn?: string | undefined;
        /** Column with the country of each row, two letters: only proxies of its pool in that country are used. */
        countryColumn?: string | undefined;
        /** Columns to copy to the result; others are not read. Default: all. */
        meta?: readonly string[] | undefined;
      } & SourceRoute &
        SourcePriority)
    | ({
        /** URL of a sitemap, feed or site. For a site, the sitemaps listed in its robots.txt are read. */
        sitemap: string;
        /** Which of its URLs to use: on the same host, within the site, or all. */
        within?: 'host' | 'site' | 'any' | undefined;
      } & SourceRoute &
        SourcePriority)
    | ({
        /** SQL on the views seine_tasks and seine_records. The column `url` holds the URL; other columns become meta. */
        query: string;
      } & SourceRoute &
        SourcePriority)
    | ({
        /** Address of a WebSocket. Each message becomes a record. `{last}` is replaced with the last value of `cursor`. */
        websocket: string;
        /** Messages after which the source ends. */
        limit?: number | undefined;
        /** The source ends when no message has come for this long. */
        idleSeconds?: number | undefined;
        /** Messages to send after each connect, such as a subscription. `{last}` is replaced as in the address. */
        send?: readonly (string | Record<string, unknown>)[] | undefined;
        /** Path to the value in each message from which the server can go on after a reconnect: `data.id`. */
        cursor?: string | undefined;
        /** Path to the value in each message that identifies its record. Default: one record per message. */
        key?: string | undefined;
      } & SourcePriority)
    | readonly (
        | string
        | ({
            /** Path, `s3://bucket/prefix/*.parquet`, or http(s) URL; `*` matches any name. */
            file: string;
            /** Format of the file. Default: from the file name. */
            format?: 'txt' | 'csv' | 'jsonl' | 'parquet' | 'sitemap' | undefined;
            /** Column or property with the URL. Default: `url`, `page_url`, `image_url` or `link`. */
            urlColumn?: string | undefined;
            /** Several URL columns and the route of each. Each row gives one task per column. */
            columns?: Record<string, string> | undefined;
            /** Column with the route of each row. A row without one gets `route`, or the route that matches. */
            routeColumn?: string | undefined;
            /** Column with the priority of each row, from -1000 to 1000. A row without one gets `priority`. */
            priorityColumn?: string | undefined;
            /** Column with the proxy pool of each row, by its name in `proxies.pools`. A row without one gets that of its route. */
            poolColumn?: string | undefined;
            /** Column with the country of each row, two letters: only proxies of its pool in that country are used. */
            countryColumn?: string | undefined;
            /** Columns to copy to the result; others are not read. Default: all. */
            meta?: readonly string[] | undefined;
          } & SourceRoute &
            SourcePriority)
        | ({
            /** URL of a sitemap, feed or site. For a site, the sitemaps listed in its robots.txt are read. */
            sitemap: string;
            /** Which of its URLs to use: on the same host, within the site, or all. */
            within?: 'host' | 'site' | 'any' | undefined;
          } & SourceRoute &
            SourcePriority)
        | ({
            /** SQL on the views seine_tasks and seine_records. The column `url` holds the URL; other columns become meta. */
            query: string;
          } & SourceRoute &
            SourcePriority)
        | ({
            /** Address of a WebSocket. Each message becomes a record. `{last}` is replaced with the last value of `cursor`. */
            websocket: string;
            /** Messages after which the source ends. */
            limit?: number | undefined;
            /** The source ends when no message has come for this long. */
            idleSeconds?: number | undefined;
            /** Messages to send after each connect, such as a subscription. `{last}` is replaced as in the address. */
            send?: readonly (string | Record<string, unknown>)[] | undefined;
            /** Path to the value in each message from which the server can go on after a reconnect: `data.id`. */
            cursor?: string | undefined;
            /** Path to the value in each message that identifies its record. Default: one record per message. */
            key?: string | undefined;
          } & SourcePriority)
      )[]
    | undefined;
  /** Wait for URLs from `seine add` or the API when all are finished, instead of ending. */
  keepOpen?: boolean | undefined;
  /** Links to follow: true, `host`, `site`, `any`, or rules. The first rule that matches a link applies. */
  follow?:
    | boolean
    | 'host'
    | 'site'
    | 'any'
    | readonly {
        /** Same host, same registrable domain, or any host. */
        within?: 'host' | 'site' | 'any' | undefined;
        /** Only links that match. */
        match?: string | readonly string[] | undefined;
        /** Only links that do not match. */
        not?: string | readonly string[] | undefined;
        /** Only links inside elements that match this selector. */
        css?: string | undefined;
        /** Only on pages of this route. */
        from?: string | undefined;
        /** Route of the new tasks. Default: the route that matches the URL. */
        route?: string | undefined;
        /** Higher runs first. */
        priority?: number | undefined;
      }[]
    | undefined;
  /** `follow` continues the same task at the new URL. `discover` creates a new task for it, so that it is never fetched twice. `auto` is `discover` if links are followed, otherwise `follow`. */
  redirects?: 'auto' | 'follow' | 'discover' | undefined;
  /** When the job stops, and what it takes at most. */
  limits?:
    | {
        /** Stop after requesting this many pages, also those that fail. */
        pages?: number | null | undefined;
        /** Maximum number of links between a source and a page. */
        depth?: number | null | undefined;
        /** Stop after receiving this many bytes. */
        bytes?: number | null | undefined;
        /** Stop after this many seconds of running. */
        seconds?: number | null | undefined;
        /** Stop after sending this many requests, retries and robots.txt included. */
        requests?: number | null | undefined;
        /** Stop after spending this many US dollars, at the prices of the settings. */
        dollars?: number | null | undefined;
        /** Stop after this many seconds of browser pages, added up over all pages. */
        browserSeconds?: number | null | undefined;
        /** Fetch nothing while the disk has less free space than this. */
        diskFreeBytes?: number | undefined;
        /** Maximum followed URLs that differ only in numbers and ids. It guards against crawler traps such as endless calendars. */
        perTemplate?: number | null | undefined;
        /** Maximum size of a page. */
        bodyBytes?: number | undefined;
        /** Read sources ahead until this many tasks are waiting. */
        window?: number | undefined;
      }
    | undefined;
  /** How gently hosts are asked; see docs/politeness.md. */
  politeness?:
    | {
        /** Requests per second and host, or `max` for no limit. */
        rate?: number | 'max' | undefined;
        /** Concurrent requests per host. Default: 4, or 32 with rate `max`. */
        parallel?: number | null | undefined;
        /** Start at half the rate, and slow down if a host refuses requests, fails or becomes slow. */
        adaptive?: boolean | undefined;
        /** For hosts that count requests by address: learn a rate for each outgoing address (a Lambda environment, a worker of the fleet), and use several at once. `rate` stays the limit of the whole host. */
        perAddress?: boolean | undefined;
        /** Lengthen each pause between requests by a random share up to this value; sometimes by much more. */
        jitter?: number | undefined;
        /** Apply rates per host, per registrable domain (`site`), or per IP address. An address is resolved once, when the host is first seen. */
        groupBy?: 'host' | 'site' | 'address' | undefined;
        /** Limits for single hosts; `*.example.com` matches all subdomains. The first match applies. */
        hosts?:
          | Record<
              string,
              {
                /** Requests per second. */
                rate?: number | 'max' | undefined;
                /** Concurrent requests. */
                parallel?: number | undefined;
                /** Hours in which requests to the host are allowed. */
                window?:
                  | {
                      /** Start, such as 22:00. */
                      from: string;
                      /** End, such as 06:00. If it is before `from`, it is on the next day. */
                      to: string;
                      /** Such as Europe/Paris. */
                      timeZone?: string | undefined;
                    }
                  | undefined;
              }
            >
          | undefined;
        /** Obey robots.txt, including Crawl-delay and Request-rate. */
        robots?: boolean | undefined;
        /** What to do with X-Robots-Tag and meta robots. `record` only records them. `obey` also follows no links of nofollow pages, stores no records or copies of noindex and noai pages, no copies of noarchive pages, and no media of noai, noimageai and noimageindex pages. */
        robotsTags?: 'record' | 'obey' | undefined;
        /** What follow rules do with links that have `rel=nofollow`. `skip` does not follow them. */
        nofollow?: 'follow' | 'skip' | undefined;
        /** Log the requests to each host, as a chain of entries that others can check: `seine export --what hosts`, `seine verify`. */
        log?: boolean | undefined;
      }
    | undefined;
  /** How the job presents itself to the sites. */
  identity?:
    | {
        /** `honest` sends the User-Agent of the crawler; `browser` sends the headers of current browsers. */
        mode?: 'honest' | 'browser' | undefined;
        /** User-Agent header in honest mode. In both modes its first word selects the rules in robots.txt. */
        userAgent?: string | undefined;
        /** URL or email address to include in the default User-Agent. */
        contact?: string | undefined;
        /** Additional request headers. */
        headers?: Record<string, string> | undefined;
        /** Headers with secret values, by origin. They are sent only to that origin. */
        secretHeaders?:
          | Record<
              string,
              Record<
                string,
                | {
                    /** Name of an environment variable. */
                    env: string;
                  }
                | {
                    /** Path of a file. In job files it is relative to the job file. */
                    file: string;
                  }
                | {
                    /** Name of a file in the folder of mounted secrets; see the setting `secrets`. */
                    secret: string;
                  }
              >
            >
          | undefined;
        /** Languages for Accept-Language, in order of preference. Default: English. */
        languages?: readonly string[] | undefined;
        /** Device type in browser mode. */
        device?: 'desktop' | 'mobile' | undefined;
        /** Keep cookies, by origin and identity. Default: true in browser mode, false in honest mode. */
        cookies?: boolean | undefined;
      }
    | undefined;
  /** Proxies; see docs/proxies.md. */
  proxies?:
    | {
        /** Pools by name. */
        pools: Record<
          string,
          {
            /** Type of the proxies. It sets the default of `rotate`. */
            type?: 'datacenter' | 'isp' | 'residential' | 'mobile' | undefined;
            /** Use only proxies that the list marks with this country or with none. Also replaces `{country}` in user names. */
            country?: string | undefined;
            /** List of proxies, one per line: `scheme://user:password@host:port`. The scheme is http, https, socks5 or socks5h. */
            from:
              | {
                  /** Name of an environment variable. */
                  env: string;
                }
              | {
                  /** Path of a file. In job files it is relative to the job file. */
                  file: string;
                }
              | {
                  /** Name of a file in the folder of mounted secrets; see the setting `secrets`. */
                  secret: string;
                }
              | {
                  /** Proxies without credentials: `http://192.0.2.1:8080`. */
                  list: readonly string[];
                  /** Where to read the `user:password` for all of them. */
                  credentials?:
                    | {
                        /** Name of an environment variable. */
                        env: string;
                      }
                    | {
                        /** Path of a file. In job files it is relative to the job file. */
                        file: string;
                      }
                    | {
                        /** Name of a file in the folder of mounted secrets; see the setting `secrets`. */
                        secret: string;
                      }
                    | undefined;
                }
              | {
                  /** Name of a list that the operator shares; see the setting `proxyPools`. */
                  shared: string;
                };
            /** `request` chooses a proxy for each request; a number keeps one proxy per host for that many seconds; `never` keeps it. Default: `request` for datacenter and isp, 600 for residential and mobile. */
            rotate?: 'request' | 'never' | number | undefined;
            /** Each host and identity keeps its proxy as long as the proxy works. */
            sticky?: boolean | undefined;
            /** Each worker keeps its own proxy as long as the proxy works. */
            perWorker?: boolean | undefined;
            /** Average requests per second through one proxy. The limits per host still apply. */
            ratePerProxy?: number | undefined;
            /** First pause of a proxy that failed or that a host blocked. It doubles each time, up to an hour. */
            cooldownSeconds?: number | undefined;
          }
        >;
        /** Pool for every request; routes can choose another. Default: no proxy. */
        default?: string | undefined;
        /** If no proxy of a pool is usable: wait for one, or connect directly. */
        fallback?: 'wait' | 'direct' | undefined;
      }
    | undefined;
  /** Remote scraping API, for routes with `fetcher: api` or `escalate: [api]`. See docs/proxies.md. */
  api?:
    | {
        /** URL that fetches one page: `{url}` is replaced with the URL of the page, `{key}` with the key. */
        url?: string | undefined;
        /** Alternative to `url`: submit lists of URLs, and fetch their pages later. */
        batch?:
          | {
              /** URL that accepts a list of URLs; `{key}` is replaced with the key. */
              submit: string;
              /** JSON body of the request. `{urls}` is replaced with the list, `{key}` with the key, `{callback}` with the URL that receives pages. */
              body?: Record<string, unknown> | undefined;
              /** URL with the status of a job; `{id}` and `{key}` are replaced. Default: the `statusUrl` of the response. */
              poll?: string | undefined;
              /** Maximum URLs in one list. */
              size?: number | undefined;
              /** How long to collect requests before a list is sent. */
              gatherMs?: number | undefined;
              /** Polling interval of a job. */
              pollMs?: number | undefined;
              /** Polling interval of a job whose pages arrive by callback. */
              callbackPollMs?: number | undefined;
              /** Path to the jobs in the response to a list: one job for all URLs, or a list with one job per URL. */
              jobs?: string | undefined;
              /** In a job: path to its id. */
              id?: string | undefined;
              /** In a job: path to its status URL. */
              statusUrl?: string | undefined;
              /** In a job: path to its state. */
              state?: string | undefined;
              /** States of finished jobs. */
              done?: readonly string[] | undefined;
              /** States of failed jobs. */
              failed?: readonly string[] | undefined;
              /** In a finished job: path to its pages, a list or a single page. */
              results?: string | undefined;
              /** In a page, or in a job for a single URL: path to the URL. */
              url?: string | undefined;
              /** In a page: path to the HTTP status of the site. */
              status?: string | undefined;
              /** In a page: path to the response headers of the site. */
              headers?: string | undefined;
              /** In a page: path to its content. */
              page?: string | undefined;
              /** Whether the content is base64. */
              base64?: boolean | undefined;
              /** In a page: path to its cost. */
              cost?: string | undefined;
            }
          | undefined;
        /** Where to read the API key. */
        key?:
          | {
              /** Name of an environment variable. */
              env: string;
            }
          | {
              /** Path of a file. In job files it is relative to the job file. */
              file: string;
            }
          | {
              /** Name of a file in the folder of mounted secrets; see the setting `secrets`. */
              secret: string;
            }
          | undefined;
        /** Headers of requests to the API; `{key}` is replaced with the key. The headers of the job are not sent to the API. */
        headers?: Record<string, string> | undefined;
        /** Response header with the site's status. Default: the status of the response is the site's. */
        statusHeader?: string | undefined;
        /** Statuses that are errors of the API itself, if no header contains the site's status. */
        errors?: readonly number[] | undefined;
        /** Concurrent requests to the API per worker. The limits per host still apply. */
        parallel?: number | undefined;
        /** Cost of a page, if the response does not contain it. */
        cost?: number | undefined;
        /** Response header with the cost of the page. */
        costHeader?: string | undefined;
      }
    | undefined;
  /** Saved login state: browsers of the job start with its cookies and storage. It is a secret. */
  login?:
    | {
        /** Where to read the JSON that Playwright's `storageState` wrote. */
        state:
          | {
              /** Name of an environment variable. */
              env: string;
            }
          | {
              /** Path of a file. In job files it is relative to the job file. */
              file: string;
            }
          | {
              /** Name of a file in the folder of mounted secrets; see the setting `secrets`. */
              secret: string;
            };
      }
    | undefined;
  /** How long each part of a request may take. */
  timeouts?:
    | {
        /** TCP and TLS handshake. */
        connectMs?: number | undefined;
        /** From the request to the response headers. */
        headersMs?: number | undefined;
        /** Longest pause while a body arrives. */
        bodyMs?: number | undefined;
        /** A whole task. */
        taskMs?: number | undefined;
        /** Learn a timeout for each host from its requests: 1.5 × their 99th percentile, at most `taskMs`. */
        adaptive?: boolean | undefined;
      }
    | undefined;
  /** How often and when a failed task is tried again. */
  retry?:
    | {
        /** Attempts before a task becomes a dead letter. */
        attempts?: number | undefined;
        /** First backoff. It doubles each time, with jitter. */
        baseMs?: number | undefined;
        /** Longest backoff. */
        maxMs?: number | undefined;
      }
    | undefined;
  /** Which fetch method is used, where a route allows several. */
  escalation?:
    | {
        /** How to choose among the fetch methods that a route allows: the `lowest` that mostly works, or the `cheapest` by cost per success for each URL template. */
        choose?: 'lowest' | 'cheapest' | undefined;
        /** Most US dollars to spend on trying whether another fetch method is cheaper. Seine never spends more than 5 % of the fetching cost on it. */
        exploreDollars?: number | undefined;
      }
    | undefined;
  /** How many workers are wanted. */
  scaling?:
    | {
        /** Have only as many batches under way as hosts and backlog need, instead of as many as the workers take. */
        adaptive?: boolean | undefined;
        /** Wanted running time of the job. Seine uses no more workers than it needs for that. */
        finishSeconds?: number | null | undefined;
      }
    | undefined;
  /** What to do with the last 1 % of the tasks: `wait` for them, `repeat` late requests on another worker, or `defer` them to the next run once they have taken a tenth of the time. */
  tail?: 'wait' | 'repeat' | 'defer' | undefined;
  /** When a failing host pauses, and when the job stops. */
  breaker?:
    | {
        /** Failures in a row after which a host is paused. */
        hostFailures?: number | undefined;
        /** First pause of a failing host. It doubles each time. */
        hostRestMs?: number | undefined;
        /** Failed probes after which its tasks become dead letters. */
        hostProbes?: number | undefined;
        /** Completely failed batches in a row after which the job stops. */
        jobBatches?: number | undefined;
      }
    | undefined;
  /** How pages that block the job are recognised; see docs/blocking.md. */
  blocking?:
    | {
        /** How block pages are recognised: `all` signals, only what `known` defences send, or not at all. A page on which the route finds what it requires never counts as blocked. */
        detect?: 'all' | 'known' | 'off' | undefined;
        /** Texts that only block pages of the sites have, in upper or lower case. A page with one of them is blocked. */
        add?: readonly string[] | undefined;
      }
    | undefined;
  /** How URLs are written, so that each page has one. */
  url?:
    | {
        /** Remove utm_*, gclid and similar parameters. */
        stripTracking?: boolean | undefined;
        /** Sort query parameters. */
        sortQuery?: boolean | undefined;
        /** `strip` treats /a/ and /a as one page. */
        trailingSlash?: 'keep' | 'strip' | undefined;
      }
    | undefined;
  /** What is kept of records that were there before. */
  records?:
    | {
        /** Update the time of an unchanged record in the store at most once per this interval. */
        guardSeconds?: number | undefined;
        /** Keep earlier versions of changed records. */
        history?: boolean | undefined;
      }
    | undefined;
  /** When a page is fetched again; see docs/revisits.md. */
  revisit?:
    | {
        /** A refresh fetches only URLs that were last fetched longer ago than this. */
        afterSeconds?: number | undefined;
        /** Learn a separate interval for each URL, from how often it changes. */
        adapt?:
          | {
              /** Shortest time between two visits; also the first. */
              minSeconds?: number | undefined;
              /** Longest time between two visits. */
              maxSeconds?: number | undefined;
            }
          | undefined;
      }
    | undefined;
  /** How media files are stored; see docs/media.md. */
  media?:
    | {
        /** One file each, named by its hash, or tar shards with a JSON file for each item. */
        pack?: 'none' | 'webdataset' | undefined;
        /** Maximum size of a media file. */
        bytes?: number | undefined;
        /** Accepted types such as `image/*`, detected from the content. Empty accepts all but HTML. */
        types?: readonly string[] | undefined;
      }
    | undefined;
  /** When `seine serve` and `seine run --watch` run the job. */
  schedule?:
    | string
    | {
        /** Cron expression. */
        cron: string;
        /** Such as Europe/Paris. Default: the time zone of the machine. */
        timeZone?: string | undefined;
        /** Fetch known URLs again instead of starting a new run. */
        refresh?: boolean | undefined;
      }
    | undefined;
  /** Who is told when a run has ended. */
  notify?:
    | {
        /** URL that the summary is posted to as JSON, or a secret that holds it. `text` is what chat services show. */
        url?:
          | string
          | {
              /** Name of an environment variable. */
              env: string;
            }
          | {
              /** Path of a file. In job files it is relative to the job file. */
              file: string;
            }
          | {
              /** Name of a file in the folder of mounted secrets; see the setting `secrets`. */
              secret: string;
            }
          | undefined;
        /** Program and arguments. It gets the summary as JSON on standard input. Only in job files; where `SEINE_JOB_COMMANDS` is set, YAML and JSON run only what it lists. */
        command?: readonly string[] | undefined;
        /** `change`: only when records changed or something failed. `failure`: only with dead letters, dropped fields, gone records, or a circuit breaker that stopped the run. */
        when?: 'always' | 'change' | 'failure' | undefined;
      }
    | readonly {
        /** URL that the summary is posted to as JSON, or a secret that holds it. `text` is what chat services show. */
        url?:
          | string
          | {
              /** Name of an environment variable. */
              env: string;
            }
          | {
              /** Path of a file. In job files it is relative to the job file. */
              file: string;
            }
          | {
              /** Name of a file in the folder of mounted secrets; see the setting `secrets`. */
              secret: string;
            }
          | undefined;
        /** Program and arguments. It gets the summary as JSON on standard input. Only in job files; where `SEINE_JOB_COMMANDS` is set, YAML and JSON run only what it lists. */
        command?: readonly string[] | undefined;
        /** `change`: only when records changed or something failed. `failure`: only with dead letters, dropped fields, gone records, or a circuit breaker that stopped the run. */
        when?: 'always' | 'change' | 'failure' | undefined;
      }[]
    | undefined;
  /** Writes records into a table of your own, in the transaction that settles their page. PostgreSQL only. */
  sink?:
    | {
        /** Table in the database of the store, such as `public.products`. Without a schema: `public`. */
        table: string;
        /** Column, and the field of the record that it gets: `amount: price.amount`. `@key` is the key of the record, by default its URL; `@job` is the name of the job; `@record` is the whole record. */
        columns: Record<string, string>;
        /** Columns that identify a row. They need a primary key or a unique index; a row that exists is updated. */
        key: readonly string[];
        /** Only records of this route. Default: all. */
        route?: string | undefined;
      }
    | undefined;
  /** Among the jobs of one server: each step doubles the share of workers. */
  priority?: number | undefined;
  /** Store pages in WARC files: true, false, or what is stored with them. */
  archive?:
    | boolean
    | {
        /** Write a `request` record for each page, without cookies, credentials and secret headers. */
        requests?: boolean | undefined;
        /** Write a `WARC-Block-Digest` for each page. */
        blockDigests?: boolean | undefined;
        /** Store responses with an error status (4xx and 5xx), up to 1 MB each. */
        errors?: boolean | undefined;
        /** Store what a browser loads for a page: scripts, styles, images, data. Up to 500 and 32 MB a page. */
        subresources?: boolean | undefined;
      }
    | undefined;
  /** Maximum tasks in one batch. Without it: 120, and up to 1,000 of hosts without a rate limit whose pages come fast. */
  batchSize?: number | undefined;
  /** Allow loopback and private addresses. */
  allowPrivate?: boolean | undefined;
  /** Allow proxies, scraping APIs and servers of source files at private addresses. Default: true; false for jobs of the API, unless the server runs with --allow-private. */
  privateServices?: boolean | undefined;
}
