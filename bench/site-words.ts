/** The stock of words that the benchmark's shop is written with. */
export const SHELVES =
  'kitchen garden office travel lighting bedding toys tools camping audio cycling knitwear'.split(' ');
export const MATERIALS =
  'brass oak linen copper walnut steel ceramic wool cork glass bamboo leather granite felt'.split(' ');
export const THINGS =
  'kettle lamp bench satchel trowel shelf blanket speaker lantern puzzle hammer teapot stool'.split(' ');
export const WORDS = (
  'the of and a to in is with for on that it as by from at this are or an be which has was not can its will more ' +
  'when one also their each two than water light hand made year time small large board finish edge surface weight ' +
  'careful maker workshop season village simple repair spare parts delivery standard wooden handle grain polished ' +
  'matte inside outside morning evening table corner room window kitchen garden winter summer customer order return ' +
  'measure centimetres grams packed recycled paper cotton natural colour shade pattern stitch seam hinge screw bolt ' +
  'quiet steady warm cold heavy gentle strong thin thick quality tested against several hundred hours daily use ' +
  'before leaves factory every piece checked twice signed person built family since keeps shape holds place easy ' +
  'clean damp cloth avoid direct sunlight store dry suits most homes pairs well other series collection limited'
).split(' ');
